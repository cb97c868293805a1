import FaultTable
import FerrySynchronization
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Bodies that have to be sent again.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ReplayedUploadTests {
    @Test("R39: 307 and 308 send the whole body again, from a new sequence", arguments: [307, 308])
    func redirects(status: Int) async throws {
        try await withServer { server, agent in
            let made = Tally()
            let file = try TemporaryFile(LoopbackServer.pattern(0..<10_000))
            var form = Multipart(boundary: "B")
            form.append("file", file: file.path, filename: "f")
            form.append(
                "stream",
                stream: { () -> Pieces in
                    made.add()
                    return Pieces(pieces: [[1, 2, 3]])
                })
            var put = put("/redirect-to?status=\(status)&url=/upload", .multipart(form))
            put.arguments = ["a": 1]
            try await agent.send(put)
            let requests = server.requests
            #expect(requests.map(\.path) == ["/redirect-to", "/upload"])
            #expect(requests[0].body == requests[1].body && requests[1].text.contains("name=\"a\""))
            #expect(requests[1].target == "/upload")
            #expect(requests[1].headers["Content-Type"] == "multipart/form-data; boundary=B")
            #expect(made.value == 2)
            #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        }
    }

    @Test("R39: 303 becomes GET without the body") func seeOther() async throws {
        try await withServer { server, agent in
            let file = try TemporaryFile([1, 2, 3])
            try await agent.send(put("/redirect-to?status=303&url=/hello", .file(file.path)))
            let last = try #require(server.requests.last)
            #expect(last.method == "GET" && last.body.isEmpty)
            #expect(last.headers["Content-Type"] == nil && last.headers["Content-Length"] == nil)
        }
    }

    @Test("R39: a stream that can be read only once is not sent again") func once() async throws {
        try await withServer { server, agent in
            let request = put("/redirect-to?status=307&url=/upload", .stream(once: Pieces(pieces: [[1, 2, 3]])))
            let error = try #require(await fault { () throws(RequestError) in try await agent.send(request) })
            #expect(error.code == .bodyNotReplayable)
            #expect(server.requestCount == 1)
            let get = put("/redirect-to?status=303&url=/hello", .stream(once: Pieces(pieces: [[1, 2, 3]])))
            #expect(try await agent.send(get).text == "Hello, ferry")
        }
    }

    @Test("A stream that the server has not asked for is sent again", arguments: [307, 401, 503])
    func anUnreadStream(status: Int) async throws {
        try await withServer {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            _ = TokenServer(on: server)
            // The body of the response goes on while its head is looked at.
            server.script(
                path: "/upload", uses: 1,
                [
                    .expectHead,
                    .send("HTTP/1.1 \(status) No\r\nLocation: /upload\r\nContent-Length: 1000000\r\n\r\nx"),
                    .keepOpen,
                ])
            var request = put("/upload", .stream(once: Pieces(pieces: [[1, 2, 3]])))
            request.headers["Expect"] = "100-continue"
            let streamed = try await agent.stream(request)
            #expect(streamed.head.status == 200)
            for try await _ in streamed.body {}
            #expect(server.requests.last { $0.path == "/upload" }?.body == [1, 2, 3])
        }
    }

    @Test func aRetrySendsAllOfItAgain() async throws {
        try await withServer {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            server.script(
                path: "/upload", uses: 1,
                [.expectBody, .send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), .serve])
            let bytes = LoopbackServer.pattern(0..<50_000)
            let file = try TemporaryFile(bytes)
            try await agent.send(put("/upload", .file(file.path)))
            #expect(server.requests.map(\.body) == [bytes, bytes])
            #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        }
    }

    @Test func aSourceThatFailsIsNotRetried() async throws {
        try await withServer {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            let made = Tally()
            let put = put(
                "/upload",
                .stream { () -> Pieces in
                    made.add()
                    return Pieces(pieces: [[1]], failsAtEnd: true)
                })
            let error = try #require(await fault { () throws(RequestError) in try await agent.send(put) })
            #expect(error.code == .uploadSource && error.cause is Oops)
            #expect(made.value == 1)
        }
    }

    @Test func adaptersSeeTheBodyAndMayExchangeIt() async throws {
        struct Exchange: RequestAdapter {
            let path: String
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                if request.url.hasSuffix("exchange") { request.body = .file(path, contentType: "a/b") }
            }
        }
        let file = try TemporaryFile([9, 9])
        try await withServer {
            $0.adapters = [Exchange(path: file.path)]
        } _: { server, agent in
            var form = Multipart(boundary: "B")
            form.append("p", "1")
            var request = put("/upload", .multipart(form))
            request.arguments = ["a": 1]
            try await agent.send(request)
            #expect(server.requests[0].text.components(separatedBy: "name=\"a\"").count == 2)
            try await agent.send(put("/upload?exchange", .stream(once: Pieces(pieces: [[1]]))))
            #expect(server.requests[1].body == [9, 9])
            let once = put("/upload", .stream(once: Pieces(pieces: [[7]])))
            try await agent.send(once)
            #expect(server.requests[2].body == [7])
        }
    }

    /// Returns the same user for every challenge.
    private struct Provider: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            Credential(user: "u", password: "p")
        }
    }

    private static let schemes = ["Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\"", "Basic realm=\"r\""]

    @Test("After a challenge the whole body is sent", arguments: schemes, [nil, UInt64(300_000)])
    func challenges(scheme: String, length: UInt64?) async throws {
        try await withServer {
            $0.credentialProvider = Provider()
        } _: { server, agent in
            server.handle("/secret") { request in
                guard request.headers["Authorization"] != nil else {
                    return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": scheme])
                }
                return LoopbackResponse(text: "\(request.body.count)")
            }
            let made = Tally()
            let request = put(
                "/secret",
                .stream(length: length) { () -> Pieces in
                    made.add()
                    return Pieces(pieces: [[UInt8](repeating: 0, count: 300_000)])
                })
            let text = try await agent.send(request).text
            #expect(text == "300000")
            #expect(made.value == 2)
            let once = put("/secret", .stream(once: Pieces(pieces: [[1, 2, 3]])))
            let error = await fault { () throws(RequestError) in try await agent.send(once) }
            #expect(error?.code == .invalidStatusCode(401))
        }
    }
}

import FerryTesting
import Foundation
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Trailer fields after the body of a request.
@Suite(.timeLimit(.minutes(1))) struct UploadTrailerTests {
    private static let pieces: [[UInt8]] = [Array("abc".utf8), Array("de".utf8)]

    /// What a server gets that takes one request with a body in chunks.
    private func sent(
        _ body: RequestBody, _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> String {
        let peer = try RawPeer()
        var configuration = NetworkConfiguration(baseURL: peer.baseURL)
        change(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        async let bytes = peer.exchange("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") { request in
            request.contains("\r\n0\r\n") && request.hasSuffix("\r\n\r\n")
        }
        let reply = try await agent.send(put("/x", body))
        #expect(reply.value.text == "ok")
        await agent.shutdown()
        return try await bytes
    }

    /// Head and body of it. libcurl may write a chunk's length with zeros before it.
    private func parts(_ text: String) throws -> (head: [Substring], body: String) {
        let end = try #require(text.range(of: "\r\n\r\n"))
        return (text[..<end.lowerBound].split(separator: "\r\n"), String(text[end.upperBound...]))
    }

    @Test(arguments: ["stream", "bytes", "file", "form"]) func trailersFollowTheLastChunk(kind: String) async throws {
        let file = try TemporaryFile(Array("abcde".utf8))
        var form = Multipart()
        form.append("a", "b")
        let bodies: [String: RequestBody] = [
            "stream": .stream { Pieces(pieces: Self.pieces) }, "bytes": .bytes(Array("abcde".utf8)),
            "file": .file(file.path), "form": .multipart(form),
        ]
        let body = try #require(bodies[kind]).withTrailers(["X-Sum", "X-Note"]) {
            ["x-sum": "5", "X-Note": ""]
        }
        let (head, rest) = try parts(try await sent(body))
        #expect(head.contains("Trailer: X-Sum, X-Note"))
        #expect(head.contains("Transfer-Encoding: chunked"))
        #expect(!head.contains { $0.hasPrefix("Content-Length") })
        #expect(rest.hasSuffix("0\r\nx-sum: 5\r\nX-Note: \r\n\r\n"))
        #expect(rest.contains(kind == "form" ? "form-data" : "de"))
    }

    /// In either order: the coding is one of the body, not of what follows it.
    @Test(arguments: [false, true], [RequestBody.Coding.gzip, .zstd]) func trailersFollowACompressedBody(
        isLast: Bool, coding: RequestBody.Coding
    ) async throws {
        func trailed(_ body: RequestBody) -> RequestBody { body.withTrailers(["X-Sum"]) { ["X-Sum": "5"] } }
        for body in [RequestBody.stream { Pieces(pieces: Self.pieces) }, .bytes(Array("abcde".utf8))] {
            let text = try await sent(isLast ? trailed(body).compressed(coding) : trailed(body.compressed(coding)))
            let (head, rest) = try parts(text)
            #expect(head.contains(coding == .gzip ? "Content-Encoding: gzip" : "Content-Encoding: zstd"))
            #expect(head.contains("Trailer: X-Sum") && head.contains("Transfer-Encoding: chunked"))
            #expect(rest.hasSuffix("0\r\nX-Sum: 5\r\n\r\n"), "\(rest)")
        }
    }

    @Test(arguments: [nil, RequestBody.Coding.gzip]) func trailersCanBeAddedToTrailers(
        coding: RequestBody.Coding?
    ) async throws {
        let inner = RequestBody.bytes(Array("abcde".utf8)).withTrailers(["X-Sum", "X-Both"]) {
            ["X-Sum": "5", "X-Both": "a"]
        }
        let outer = (coding.map { inner.compressed($0) } ?? inner).withTrailers(["X-Note", "x-both"]) {
            ["X-Note": "n", "X-Both": "b"]
        }
        let (head, rest) = try parts(try await sent(outer))
        #expect(head.contains("Trailer: X-Sum, X-Both, X-Note"), "\(head)")
        #expect(rest.hasSuffix("0\r\nX-Sum: 5\r\nX-Both: a\r\nX-Note: n\r\nX-Both: b\r\n\r\n"), "\(rest)")
    }

    @Test func addedTrailersShareTheLimit() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let long = String(repeating: "x", count: 9_000)
        let body = RequestBody.bytes([1]).withTrailers(["X-A"]) { ["X-A": long] }.withTrailers(["X-B"]) {
            ["X-B": long]
        }
        let error = await exchangeError { _ = try await agent.send(put("/x", body)) }
        #expect(error?.code == .uploadSource)
        #expect(error?.message.contains("(limit 16384)") == true, "\(error?.message ?? "")")
        await agent.shutdown()
    }

    @Test func trailersAreRequestedAfterTheLastByte() async throws {
        let given = Tally()
        let body = RequestBody.stream {
            AsyncStream<[UInt8]> { continuation in
                for piece in Self.pieces {
                    given.add()
                    continuation.yield(piece)
                }
                continuation.finish()
            }
        }.withTrailers(["X-Sum"]) { ["X-Sum": "\(given.value)"] }
        #expect(try await sent(body).hasSuffix("0\r\nX-Sum: 2\r\n\r\n"))
    }

    @Test func announcedTrailersMayBeOmitted() async throws {
        let body = RequestBody.bytes([0x61]).withTrailers(["X-Sum"]) { Headers() }
        #expect(try await sent(body).hasSuffix("a\r\n0\r\n\r\n"))
        let none = RequestBody.bytes([0x61]).withTrailers([]) { ["X-Sum": "1"] }
        #expect(none.trailerNames.isEmpty)
    }

    @Test func anAdapterMaySetABodyWithTrailers() async throws {
        struct Summing: RequestAdapter {
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                request.body = RequestBody.bytes([0x62]).withTrailers(["X-Sum"]) { ["X-Sum": "1"] }
            }
        }
        let body = RequestBody.bytes([0x61]).withTrailers(["X-Sum"]) { ["X-Sum": "0"] }
        let text = try await sent(body) { $0.adapters = [Summing()] }
        #expect(text.hasSuffix("b\r\n0\r\nX-Sum: 1\r\n\r\n"))
        #expect(text.components(separatedBy: "Trailer: X-Sum\r\n").count == 2, "they are announced once")
    }

    /// After a 503, a redirect and a refused token. Nothing of an earlier attempt is left in a later one.
    @Test func eachAttemptAsksForItsOwnTrailers() async throws {
        struct Counting: Authenticator {
            var token: String? { "0" }
            func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["X-Token"] = token }
            func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String { (old ?? "") + "1" }
            func isRefused(_ response: Response) -> Bool { response.status == 401 }
        }
        let peer = try RawPeer()
        var configuration = NetworkConfiguration(baseURL: peer.baseURL)
        configuration.retryPolicy = .quick
        configuration.authenticator = Counting()
        let agent = NetworkAgent(configuration: configuration)
        let answers = ["503 Busy\r\n", "307 Moved\r\nLocation: /y\r\n", "401 No\r\n", "200 OK\r\n"]
        async let sent = peer.exchanges(answers.map { "HTTP/1.1 \($0)Content-Length: 0\r\nConnection: close\r\n\r\n" })
        {
            $0.contains("\r\n0\r\n") && $0.hasSuffix("\r\n\r\n")
        }
        let asked = Tally()
        let body = RequestBody.stream { Pieces(pieces: Self.pieces) }.withTrailers(["X-Sum"]) {
            asked.add()
            return ["X-Sum": "\(asked.value)"]
        }
        let reply = try await agent.send(put("/x", body))
        #expect(reply.status == 200 && reply.attempts == 4)
        let texts = try await sent
        for (index, text) in texts.enumerated() {
            let (head, rest) = try parts(text)
            #expect(head.filter { $0.hasPrefix("Trailer:") } == ["Trailer: X-Sum"], "\(index)")
            #expect(rest.hasSuffix("0\r\nX-Sum: \(index + 1)\r\n\r\n"), "\(index): \(rest)")
            #expect(rest.components(separatedBy: "X-Sum").count == 2, "\(index): \(rest)")
        }
        #expect(texts.count == 4 && asked.value == 4)
        await agent.shutdown()
    }

    @Test func aRedirectToGETAnnouncesNoTrailers() async throws {
        let server = try LoopbackServer()
        server.script(
            path: "/x", [.expectBody, .send("HTTP/1.1 303 Other\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n"), .serve])
        server.handle("/y") { _ in LoopbackResponse(text: "ok") }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let asked = Tally()
        let body = RequestBody.bytes([1]).withTrailers(["X-Sum"]) {
            asked.add()
            return ["X-Sum": "1"]
        }
        #expect(try await agent.send(put("/x", body)).text == "ok")
        let last = try #require(server.requests.last)
        #expect(last.method == "GET" && last.headers["Trailer"] == nil && last.headers["Transfer-Encoding"] == nil)
        #expect(asked.value == 1)
        await agent.shutdown()
    }

    /// libcurl answers the challenge, with the whole body again.
    @Test(arguments: [[UInt8](), Array("abc".utf8)]) func aChallengeIsAnsweredWithTrailersToo(bytes: [UInt8])
        async throws
    {
        let server = try LoopbackServer()
        let challenge = #"WWW-Authenticate: Digest realm="r", nonce="abc""#
        server.script(
            path: "/x", uses: 1,
            [.expectBody, .send("HTTP/1.1 401 No\r\n\(challenge)\r\nContent-Length: 0\r\n\r\n"), .serve])
        server.handle("/x") { LoopbackResponse(text: $0.text) }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let asked = Tally()
        var request = put(
            "/x",
            RequestBody.bytes(bytes).withTrailers(["X-Sum"]) {
                asked.add()
                return ["X-Sum": "\(asked.value)"]
            })
        request.authorization = .digest("kim", "pw")
        let reply = try await agent.send(request)
        #expect(reply.bytes == bytes && server.requests.last?.headers["Authorization"]?.hasPrefix("Digest ") == true)
        await agent.shutdown()
    }

    // MARK: What is refused

    @Test(arguments: [
        "Content-Length", "transfer-encoding", "Host", "Authorization", "Cookie", "Set-Cookie", "Trailer", "TE",
        "Content-Type", "Content-Encoding", "Cache-Control", "Range", "If-Match", "Expect", "Connection", "Upgrade",
        "Idempotency-Key", "", "a b", "X:", "X\r\nY", "Ä",
    ]) func fieldsForFramingAndRoutingCannotBeTrailers(name: String) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let body = RequestBody.bytes([1]).withTrailers(["X-Sum", name]) { Headers() }
        #expect(
            await code { () throws(RequestError) in try await agent.send(put("/x", body)) }
                == .invalidRequest(.headerName))
        #expect(server.connectionCount == 0)
        await agent.shutdown()
    }

    enum Wrong: CaseIterable, Sendable {
        case name, lineBreak, size, thrown

        var fields: @Sendable () async throws -> Headers {
            switch self {
            case .name: { ["X-Other": "1"] }
            case .lineBreak: { ["X-Sum": "1\r\nX-Evil: 2"] }
            case .size: { ["X-Sum": String(repeating: "a", count: 20_000)] }
            case .thrown: { throw Oops() }
            }
        }
    }

    @Test(arguments: Wrong.allCases) func wrongTrailersAbortTheRequest(wrong: Wrong) async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", [.expectBody, .send(answer("no"))])
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        do throws(RequestError) {
            _ = try await agent.send(put("/x", RequestBody.bytes([1]).withTrailers(["X-Sum"], wrong.fields)))
            Issue.record("it was sent")
        } catch {
            #expect(error.code == .uploadSource && error.bytesReceived == 0)
            #expect((error.cause is Oops) == (wrong == .thrown))
        }
        try await server.waitForOpenConnections(atMost: 0)
        await agent.shutdown()
    }

    @Test func aRunThatEndsDoesNotWaitForTrailers() async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", [.expectBytes(5), .expectClose])
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let (ended, end) = AsyncStream<Void>.makeStream()
        let body = RequestBody.bytes([1]).withTrailers(["X-Sum"]) {
            let token = Token(end)
            begin.finish()
            await AsyncStream<Void> { _ in }.finished()
            withExtendedLifetime(token) {}
            return Headers()
        }
        let task = Task { await code { () throws(RequestError) in try await agent.send(put("/x", body)) } }
        await begun.finished()
        task.cancel()
        let ending = await task.value
        #expect(ending == .cancelled, "\(String(describing: ending))")
        await ended.finished()
        await agent.shutdown()
    }

    @Test func trailersWithPriorKnowledgeAreRefused() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.http2 = .priorKnowledge
        let agent = NetworkAgent(configuration: configuration)
        let body = RequestBody.bytes([1]).withTrailers(["X-Sum"]) { Headers() }
        do throws(RequestError) {
            _ = try await agent.send(put("/x", body))
            Issue.record("it was sent")
        } catch {
            #expect(error.code == .invalidRequest && error.message.contains("HTTP/2"))
        }
        #expect(server.connectionCount == 0)
        await agent.shutdown()
    }
}

/// A server of one connection, byte by byte: chunks and what follows them are not taken apart.
private final class RawPeer: Sendable {
    let baseURL: String
    private let listener: Int32

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listener, sizeBefore) = (listener, size)
        let code = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, sizeBefore) | listen(listener, 1) | getsockname(listener, address, &size)
            }
        }
        if code != 0 { throw Oops() }
        baseURL = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
    }

    deinit { close(listener) }

    /// One exchange after another, each on its own connection.
    func exchanges(_ answers: [String], isWhole: @escaping @Sendable (String) -> Bool) async throws -> [String] {
        var texts: [String] = []
        for answer in answers { texts.append(try await exchange(answer, isWhole: isWhole)) }
        return texts
    }

    /// Reads until `isWhole`, and answers.
    func exchange(_ answer: String, isWhole: @escaping @Sendable (String) -> Bool) async throws -> String {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "raw.peer").async {
                let connection = accept(self.listener, nil, nil)
                defer { close(connection) }
                var text = ""
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while !isWhole(text) {
                    let count = read(connection, &buffer, buffer.count)
                    if count <= 0 { break }
                    text += String(decoding: buffer[..<count], as: UTF8.self)
                }
                _ = answer.withCString { write(connection, $0, strlen($0)) }
                // The client closes first.
                while read(connection, &buffer, buffer.count) > 0 {}
                continuation.resume(returning: text)
            }
        }
    }
}

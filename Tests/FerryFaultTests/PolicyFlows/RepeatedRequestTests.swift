import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Which requests may be sent twice, and what they contain then: rows R77 and R78.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RepeatedRequestTests {
    @Test(
        "R77: a request that may have been processed is not sent again", arguments: [HTTPMethod.post, .patch, "MAKE"])
    func notIdempotent(method: HTTPMethod) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/x", uses: 2, [.expectBody, .close])
            server.script(path: "/x", unwanted(503))
            let call = HTTPRequest(method, "/x", body: .string("once"))
            for result in await agent.resultsOfBothWays(call) {
                let error = try #require(result.error)
                #expect(error.code == .connectionClosed && error.mayHaveBeenProcessed && error.attempts == 1)
            }
            for result in await agent.resultsOfBothWays(call) {
                #expect(result.error?.code == .invalidStatusCode(503) && result.error?.attempts == 1)
            }
            #expect(server.requestCount == 4)
        }
    }

    enum Leave: CaseIterable, Sendable {
        case key, request, policy, rule
    }

    @Test("It is sent again if that is declared safe", arguments: Leave.allCases)
    func idempotencyKey(leave: Leave) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            for fault in [[.expectBody, .close], unwanted(503)] as [LoopbackScript] {
                server.script(path: "/hello", uses: 1, fault)
                var call = HTTPRequest(.post, "/hello", body: .string("twice"))
                switch leave {
                case .key: call.headers = ["idempotency-key": "1"]
                case .request: call.isIdempotent = true
                case .policy: call.retryPolicy = .quick { $0.retriesNonIdempotent = true }
                case .rule: call.retryPolicy = .quick { $0.decide = { _ in .retry } }
                }
                let reply = try await agent.send(call)
                #expect(reply.attempts == 2)
            }
            #expect(server.requests.allSatisfy { $0.text == "twice" } && server.requestCount == 4)
        }
    }

    @Test("A request that certainly was not processed is retried, whatever its method")
    func neverSent() async throws {
        let tried = Tally()
        let closed = try LoopbackServer(.refusing)
        try await withFlow {
            $0.retryPolicy = .quick {
                $0.decide = { _ in
                    tried.add()
                    return .byPolicy
                }
            }
        } _: { _, agent in
            let call = HTTPRequest(.post, closed.baseURL + "/x", body: .string("once"))
            let error = try #require(await agent.result(call).error)
            #expect(error.code == .connect(.refused) && error.attempts == 4 && !error.mayHaveBeenProcessed)
            #expect(tried.value == 3, "the last failure is not asked about")
        }
    }

    @Test("That an earlier attempt may have been processed is not forgotten", arguments: Way.allCases)
    func processedBefore(way: Way) async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", [.expectBody, .close])
        try await withFlow {
            // By the second attempt the server is gone.
            $0.retryPolicy = .quick {
                $0.decide = { _ in
                    server.stop()
                    return .retry
                }
            }
        } _: { _, agent in
            let call = HTTPRequest(.post, server.baseURL + "/x", body: .string("once"))
            let error = try #require(await agent.result(call, way).error)
            #expect(.connect ~= error && error.attempts == 4)
            #expect(error.mayHaveBeenProcessed)
        }
    }

    // MARK: Bodies

    @Test("Bodies that can be read again are sent again, whole")
    func replayedBodies() async throws {
        let bytes = LoopbackServer.pattern(0..<200_000)
        let file = try TemporaryFile(bytes)
        var form = Multipart(boundary: "B")
        form.append("file", file: file.path)
        form.append("stream", stream: { Pieces(pieces: [bytes, bytes]) })
        let bodies: [RequestBody] = [
            .bytes(bytes), .file(file.path), .multipart(form), .stream { Pieces(pieces: [bytes]) },
            .stream(length: 200_000) { Pieces(pieces: [bytes]) },
        ]
        var options = LoopbackServer.Options()
        options.recordedBodyBytes = 1_000_000
        try await withFlow(server: options) {
            $0.retryPolicy = .quick
        } _: { server, agent in
            for (index, body) in bodies.enumerated() {
                server.script(path: "/upload", uses: 1, [.expectBody, .close])
                server.script(path: "/upload", uses: 1, unwanted(503))
                let call = HTTPRequest(.put, "/upload", body: body)
                let reply = try await agent.result(call, index.isMultiple(of: 2) ? .awaited : .closure).get()
                #expect(reply.attempts == 3)
                let sent = server.requests.suffix(3).map(\.body)
                #expect(sent[0] == sent[1] && sent[1] == sent[2] && sent[0].count >= bytes.count)
            }
        }
    }

    @Test("A stream that can be read once is not sent again, and its first error is reported")
    func onceBody() async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            for (fault, code) in [
                ([.expectBody, .close], .connectionClosed), (unwanted(503), .invalidStatusCode(503)),
            ] as [(LoopbackScript, RequestError.Code)] {
                server.script(path: "/upload", uses: 1, fault)
                let call = HTTPRequest(.put, "/upload", body: .stream(once: Pieces(pieces: [[1, 2, 3]])))
                let error = try #require(await agent.result(call).error)
                #expect(error.code == code && error.attempts == 1)
            }
            #expect(server.requestCount == 2)
        }
    }
}

import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Dead kept connections (rows R76, R77), responses that nobody reads (R74).
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ReuseFaultTests {
    /// Two requests, the second on a connection that the server ends as `end` says.
    private func second(
        _ request: HTTPRequest<Response>, after end: [LoopbackScript.Step], isClosedBefore: Bool,
        check: (FaultOutcome, LoopbackServer) async throws -> Void
    ) async throws {
        for play in Play.allCases {
            let server = try LoopbackServer()
            server.script(
                connection: 1,
                LoopbackScript([.expectHead, .send(answer("first")), .mark("first"), .wait("go")] + end))
            let watch = SecretWatch()
            var configuration = NetworkConfiguration()
            watch.look(into: &configuration)
            let agent = NetworkAgent(configuration: configuration)
            #expect(try await agent.send(Get(server.baseURL + "/1")).text == "first")
            server.signal("go")
            if isClosedBefore { try await server.waitForOpenConnections(atMost: 0) }
            var request = request
            request.path = server.baseURL + "/second?" + Canary.query
            request.statusValidation = .any
            let result = try await agent.outcome(of: request, play)
            try await check(result, server)
            #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
            await agent.shutdown()
            watch.keep(result)
            await watch.expectNoSecret(agent.core, asking: request, #_sourceLocation)
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    @Test(
        "R76: a GET on a connection closed meanwhile is sent on a new one",
        arguments: [LoopbackScript.Step.close, .reset])
    func closedMeanwhile(end: LoopbackScript.Step) async throws {
        try await second(.probe(), after: [end], isClosedBefore: true) { result, server in
            let reply = try result.get()
            #expect(reply.status == 404)
            #expect(server.requests.filter { $0.path == "/second" }.count == 1)
        }
    }

    @Test("R76: so is a POST, because nothing of it was sent", arguments: [LoopbackScript.Step.close, .reset])
    func postClosedMeanwhile(end: LoopbackScript.Step) async throws {
        var probe = HTTPRequest.probe(.post)
        // The close has arrived before the request is sent: any check of the connection sees it.
        for body in ["", Canary.body, String(repeating: Canary.body, count: 20_000)] {
            probe.body = .string(body)
            try await second(probe, after: [end], isClosedBefore: true) { result, server in
                let reply = try result.get()
                #expect(reply.status == 404)
                let sent = server.requests.filter { $0.path == "/second" }
                #expect(sent.count == 1 && sent.first?.bodyLength == UInt64(body.utf8.count))
                #expect(server.connectionCount == 2)
            }
        }
    }

    @Test(
        "R76: a GET that the closing connection accepted is sent again",
        arguments: [HTTPMethod.get, .head, .put, .delete])
    func takenByDying(method: HTTPMethod) async throws {
        var probe = HTTPRequest.probe(method)
        probe.body = method == .put ? .string("again") : nil
        try await second(probe, after: [.expectHead, .close], isClosedBefore: false) { result, server in
            let reply = try result.get()
            #expect(reply.attempts == 2)
            #expect(reply.status == 404)
            let sent = server.requests.filter { $0.path == "/second" }
            #expect(sent.count == 2)
            #expect(sent.last?.text == (method == .put ? "again" : ""))
            #expect(server.connectionCount == 2)
        }
    }

    @Test(
        "R77: a POST that the closing connection accepted is never sent again",
        arguments: [HTTPMethod.post, .patch, "MAKE"])
    func postTakenByDying(method: HTTPMethod) async throws {
        for body in [nil, "", "once", String(repeating: "x", count: 200_000)] {
            var probe = HTTPRequest.probe(method)
            probe.body = body.map { .string($0) }
            try await second(probe, after: [.expectHead, .expectBody, .close], isClosedBefore: false) {
                result, server in
                switch result {
                case .success: Issue.record("it was answered")
                case .failure(let error):
                    check(
                        error,
                        ExpectedFault(
                            code: .connectionClosed, phases: [.waitingHead, .send], processed: true,
                            attempts: 1),
                        url: server.baseURL + "/second?token=***")
                }
                #expect(server.requests.filter { $0.path == "/second" }.count == 1)
            }
        }
    }

    @Test("R77: a POST that allows it is sent again")
    func postThatMay() async throws {
        var probe = HTTPRequest.probe(.post)
        probe.body = .string("twice")
        probe.isIdempotent = true
        try await second(probe, after: [.expectHead, .close], isClosedBefore: false) { result, server in
            let reply = try result.get()
            #expect(reply.status == 404)
            #expect(server.requests.filter { $0.path == "/second" }.count == 2)
        }
    }

    @Test("R77: a GET with half a response is not sent again")
    func halfAnswered() async throws {
        let half = head("200 OK", "Content-Length: 10\r\n") + "abc"
        try await second(.probe(), after: [.expectHead, .send(half), .close], isClosedBefore: false) { result, server in
            guard case .failure(let error) = result else {
                Issue.record("half an answer was one")
                return
            }
            #expect(error.code == .incompleteBody(expected: 10, got: 3))
            #expect(error.attempts == 1)
            #expect(server.requests.filter { $0.path == "/second" }.count == 1)
        }
    }

    @Test("R76: a server that closes after every response costs connections, not responses")
    func closingServer() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        for _ in 0..<50 { #expect(try await agent.send(Get(server.baseURL + "/close")).text == "Hello, ferry") }
        #expect(server.connectionCount == 50)
        #expect(server.requestCount == 50)
        await agent.shutdown()
    }

    @Test("R74: responses that nobody reads delay nothing")
    func droppedResponses() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        for size in [0, 10, 100_000, 10_000_000] {
            for _ in 0..<5 {
                try await agent.send(Get(server.baseURL + "/bytes/\(size)"))
                agent.start(Get(server.baseURL + "/bytes/\(size)")) { _ in }
            }
        }
        #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
        await agent.shutdown()
        #expect(agent.statistics.finished == 41)
        try await server.waitForOpenConnections(atMost: 0)
    }
}

import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Failing names and connections: rows R49 to R53.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ConnectFaultTests {
    @Test("R49: a closed port is refused at once", arguments: [HTTPMethod.get, .post])
    func refused(method: HTTPMethod) async throws {
        try await expectFault([], .connect(.refused), .connect, processed: false, attempts: 1, received: 0) {
            $0.server.accepting = .refused
            $0.next = .otherServer
            $0.probe.method = method
            $0.ends(within: .milliseconds(100))
        }
    }

    @Test("R49: a closed port behind a name is refused at once")
    func refusedByName() async throws {
        try await expectFault([], .connect(.refused), .connect, processed: false, attempts: 1) {
            $0.server.accepting = .refused
            $0.host = "localhost"
            $0.next = .otherServer
        }
    }

    @Test(
        "R49: an unreachable network is reported as such",
        arguments: ["http://[fe80::1]:1/", "http://255.255.255.255:1/"])
    func unreachable(url: String) async throws {
        try await withFlow { _, agent in
            // Not noted for the table: the finer cause depends on the machine.
            for result in await agent.resultsOfBothWays(.probe(url + "?" + Canary.query)) {
                let error = try #require(result.error)
                #expect(.connect ~= error && !error.mayHaveBeenProcessed && error.attempts == 1, "\(error)")
                expectNoSecret(in: error)
            }
        }
    }

    @Test(
        "R50: a name that cannot exist is not found",
        arguments: ["x.invalid", "a.b.c.invalid", "X.INVALID", "x.invalid."])
    func unknownName(host: String) async throws {
        try await expectFault([], .dns(.notFound), .dns, processed: false, attempts: 1, received: 0) {
            $0.probe.path = "http://\(Canary.userInfo)\(host)/?\(Canary.query)"
            $0.checksURL = false
        }
    }

    @Test("R50: the error is the name's, however many runs wait and whatever their timeouts")
    func unknownNameForMany() async throws {
        var configuration = NetworkConfiguration()
        configuration.limits.maxConcurrentTransfers = 2
        configuration.deadline = .seconds(30)
        configuration.timeouts.connect = .seconds(30)
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<100).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get("http://x.invalid/"), completion: outcome.take) }
        for outcome in outcomes { #expect(await outcome.code == .dns(.notFound)) }
        await agent.shutdown()
    }

    @Test("R52: a port that does not respond is a connect timeout", arguments: [true, false])
    func connectTimeout(isOwn: Bool) async throws {
        try await expectFault([], .timeout(.connect), .connect, processed: false, attempts: 1, received: 0) {
            $0.server.accepting = .none
            $0.next = .otherServer
            let timeouts = isOwn ? Timeouts(connect: .milliseconds(200)) : Timeouts(idle: .milliseconds(200))
            $0.probe.timeouts = timeouts
            $0.ends(after: .milliseconds(200), within: .milliseconds(100))
        }
    }

    @Test("R52: the total timeout and the deadline apply, too")
    func otherBounds() async throws {
        try await expectFault([], .timeout(.total), .connect, processed: false, attempts: 1) {
            $0.server.accepting = .none
            $0.next = .otherServer
            $0.probe.timeouts = Timeouts(total: .milliseconds(200))
            $0.ends(after: .milliseconds(200))
        }
        try await expectFault([], .timeout(.deadline), .connect, processed: false, attempts: 1) {
            $0.server.accepting = .none
            $0.next = .otherServer
            $0.probe.deadline = .milliseconds(600)
            $0.ends(after: .milliseconds(600))
        }
    }

    @Test("R52: no timeout comes early")
    func notEarly() async throws {
        var options = LoopbackServer.Options()
        options.accepting = .none
        let server = try LoopbackServer(options)
        let agent = NetworkAgent()
        for milliseconds in [1, 50, 300] {
            var request = HTTPRequest(.get, server.baseURL)
            request.timeouts = Timeouts(connect: .milliseconds(milliseconds))
            let start = ContinuousClock.now
            let error = await fault { () throws(RequestError) in try await agent.send(request) }
            #expect(ContinuousClock.now - start >= .milliseconds(milliseconds) - .milliseconds(1))
            #expect(error?.code == .timeout(.connect))
        }
        await agent.shutdown()
    }

    @Test("R53: a name is reached although one of its addresses refuses")
    func firstAddress() async throws {
        try await expectAnswer(setUp: {
            $0.host = "localhost"
            $0.path = "/hello"
        }) { response, _ in
            #expect(response.text == "Hello, ferry")
            #expect(response.peer?.address == "127.0.0.1")
        }
    }

    @Test("R53: a refused address is not reported while another one works", arguments: Play.allCases)
    func secondAddress(play: Play) async throws {
        try await withFlow { _, agent in
            let (server, refusing) = try serverOnIPv6Only()
            let probe = HTTPRequest.probe("http://localhost:\(server.port)/hello?" + Canary.query)
            let reply = try await agent.outcome(of: probe, play).get()
            #expect(reply.text == "Hello, ferry")
            #expect(reply.peer?.address == "::1")
            #expect(reply.attempts == 1)
            server.stop()
            refusing.stop()
        }
    }

    /// The same port is reserved on 127.0.0.1, so that no other server uses it.
    private func serverOnIPv6Only() throws -> (LoopbackServer, LoopbackServer) {
        var options = LoopbackServer.Options()
        options.address = "::1"
        while true {
            let server = try LoopbackServer(options)
            var other = LoopbackServer.Options()
            other.port = server.port
            other.accepting = .refused
            if let refusing = try? LoopbackServer(other) { return (server, refusing) }
        }
    }

    @Test("R53: an address is accepted as a host, IPv6 in brackets")
    func literals() async throws {
        var options = LoopbackServer.Options()
        options.address = "::1"
        try await expectAnswer(setUp: {
            $0.server = options
            $0.path = "/hello"
        }) { response, server in
            #expect(response.peer?.address == "::1")
            #expect(response.peer?.port == Int(server.port))
            #expect(server.requests[0].headers["Host"] == "[::1]:\(server.port)")
        }
    }
}

import CAllocations
import CWrites
import FerryTesting
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The figures of an agent for the connections of each origin.
@Suite(.timeLimit(.minutes(1))) struct ConnectionStatisticsTests {
    /// The figures of the server, once they are as expected: the loop's thread writes them.
    private func figures(
        of server: LoopbackServer, in agent: NetworkAgent, until isReached: (ConnectionStatistics) -> Bool
    ) async -> ConnectionStatistics {
        var figures = ConnectionStatistics()
        let isThere = await eventually {
            figures = agent.statistics.origins[server.baseURL] ?? ConnectionStatistics()
            return isReached(figures)
        }
        #expect(isThere, "\(figures)")
        return figures
    }

    @Test func aKeptConnectionIsOpenIdleAndUsedAgain() async throws {
        try await withServer(engine: .automatic) { server, agent in
            #expect(agent.statistics.origins.isEmpty)
            for _ in 0..<5 { try await agent.send(Get("/hello")) }
            let figures = await figures(of: server, in: agent) { $0.idle == 1 }
            #expect(figures.open == 1 && figures.opened == 1 && figures.reused == 4 && figures.pending == 0)
            #expect(figures.failed == 0 && figures.closed.isEmpty && figures.waitingTime > .zero)
            #expect(agent.statistics.origins.count == 1 && agent.statistics.forgottenOrigins.opened == 0)
        }
    }

    @Test(
        "if the process has no more file numbers, an idle connection gives up its own",
        .enabled(if: writes_can_be_held()))
    func eviction() async throws {
        try await withServer(engine: .automatic) { server, agent in
            let other = try LoopbackServer()
            try await agent.send(Get("/hello"))
            _ = await figures(of: server, in: agent) { $0.idle == 1 }
            socket_fails_once(EMFILE)
            #expect(try await agent.get(other.baseURL + "/hello").status == 200)
            let figures = await figures(of: server, in: agent) { $0.open == 0 }
            #expect(figures.closed == [.evicted: 1])
        }
        try await withServer(engine: .automatic) { _, agent in
            socket_fails_once(EMFILE)
            let error = await #expect(throws: RequestError.self) { try await agent.send(Get("/hello")) }
            #expect(error?.code == .connect(.failed))
        }
    }

    @Test func whatHasNoPlaceOrNoConnectionYetIsPending() async throws {
        try await withServer(engine: .automatic) {
            $0.limits.transfersPerHost = 2
        } _: { server, agent in
            server.script(path: "/held", [.expectHead, .mark("held"), .wait("go"), .serve])
            let tasks = (0..<5).map { _ in Task { try await agent.send(Get("/held")).status } }
            let figures = await figures(of: server, in: agent) { $0.pending == 3 && $0.opened == 2 }
            #expect(figures.idle == 0 && figures.open == 2)
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: RequestError.self) { try await task.value } }
            // A waiting one may also start before it is cancelled.
            let end = await self.figures(of: server, in: agent) { $0.pending == 0 && $0.open == 0 }
            #expect(end.closed[.cancelled, default: 0] >= 2 && end.closed.count == 1)
        }
    }

    @Test func whatWaitsForAHandshakeIsPending() async throws {
        let certificate = try ServerCertificate()
        try await withServer(.init(certificate: certificate), engine: .automatic) { server, agent in
            server.script([.stallHandshake])
            let task = Task { try await agent.send(Get("/hello")).status }
            let figures = await figures(of: server, in: agent) { $0.opened == 1 }
            #expect(figures.pending == 1 && figures.open == 1 && figures.idle == 0)
            task.cancel()
            await #expect(throws: RequestError.self) { try await task.value }
        }
    }

    private static let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private static let scripts: [(reason: ConnectionCloseReason, script: LoopbackScript)] = [
        (.server, [.expectHead, .send(response), .close]),
        (.server, [.expectHead, .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")]),
        (.poisoned, [.expectHead, .send(response + "HTTP/1.1 200"), .keepOpen]),
        (.error, [.expectHead, .send("nonsense\r\n"), .keepOpen]), (.error, [.expectHead, .reset]),
    ]

    @Test("A closed connection is counted by its reason", arguments: 0..<scripts.count)
    func reasons(index: Int) async throws {
        let (reason, script) = Self.scripts[index]
        try await withServer(engine: .automatic) { server, agent in
            server.script(script)
            _ = await agent.result(Get("/hello"))
            let figures = await figures(of: server, in: agent) { $0.open == 0 && $0.opened > 0 }
            #expect(figures.closed == [reason: 1] && figures.opened == 1 && figures.idle == 0)
        }
    }

    @Test func theRequestsOwnCloseItsLifetimeAndItsIdleTimeAreReasons() async throws {
        try await withServer(engine: .automatic) { server, agent in
            try await agent.send(Full(path: "/hello", headers: ["Connection": "close"]))
            _ = await figures(of: server, in: agent) { $0.closed == [.request: 1] }
        }
        try await withServer(engine: .automatic) {
            $0.connectionLifetime = .milliseconds(1)
        } _: { server, agent in
            while agent.statistics.connectionsOpened < 3 { try await agent.send(Get("/hello")) }
            let figures = await figures(of: server, in: agent) { $0.opened >= 3 }
            #expect(figures.closed[.lifetime] == figures.opened - figures.open && figures.closed.count == 1)
        }
        try await withServer(engine: .automatic) {
            $0.idleConnectionTime = .milliseconds(500)
        } _: { server, agent in
            try await agent.send(Get("/hello"))
            // The origin is forgotten with its last connection, or soon after.
            #expect(await eventually { agent.statistics.forgottenOrigins.closed == [.idle: 1] })
            #expect(agent.statistics.origins.isEmpty && agent.statistics.forgottenOrigins.opened == 1)
            try await agent.send(Get("/hello"))
            #expect(agent.statistics.origins[server.baseURL]?.opened == 1)
        }
    }

    @Test func whoRefusesHasFailed() async throws {
        var options = LoopbackServer.Options()
        options.accepting = .refused
        try await withServer(options, engine: .automatic) { server, agent in
            for _ in 0..<3 { #expect(await agent.result(Get("/hello")).error?.code == .connect(.refused)) }
            let figures = await figures(of: server, in: agent) { $0.failed == 3 }
            #expect(figures.opened == 0 && figures.pending == 0)
        }
    }

    @Test func libcurlsConnectionsAreCountedAsFarAsItTells() async throws {
        try await withServer(engine: .libcurl) { server, agent in
            for _ in 0..<3 { try await agent.send(Get("/hello")) }
            try await agent.send(Full(path: "/hello", headers: ["Connection": "close"]))
            let figures = await figures(of: server, in: agent) { $0.opened > 0 && $0.open == 0 }
            #expect(figures.opened == 1 && figures.reused == 3 && figures.closed == [.unknown: 1])
            #expect(figures.pending == 0 && figures.idle == 0)
        }
    }

    @Test func twoLoopsAreOneOrigin() async throws {
        try await withServer(engine: .automatic) {
            $0.eventLoopCount = 2
        } _: { server, agent in
            for _ in 0..<6 { try await agent.send(Get("/hello")) }
            let figures = await figures(of: server, in: agent) { $0.idle == 2 }
            #expect(figures.opened == 2 && figures.reused == 4 && agent.statistics.origins.count == 1)
        }
    }

    @Test func thePrometheusTextHasThemByOrigin() async throws {
        try await withServer(engine: .automatic) { server, agent in
            for _ in 0..<3 { try await agent.send(Get("/hello")) }
            _ = await figures(of: server, in: agent) { $0.idle == 1 }
            let text = MetricsRecorder().prometheusText(with: agent.statistics)
            for line in [
                "# TYPE ferry_connections_open gauge", #"ferry_connections_open{origin="\#(server.baseURL)"} 1"#,
                #"ferry_connections_idle{origin="\#(server.baseURL)"} 1"#,
                "# TYPE ferry_connections_opened_total counter",
                #"ferry_connections_reused_total{origin="\#(server.baseURL)"} 2"#,
                #"ferry_connections_opened_total{origin="other"} 0"#, "ferry_requests_in_flight 0",
            ] {
                #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)")
            }
        }
    }

    /// Names below localhost are resolved without a lookup.
    @Test(.enabled(if: allocations_are_counted())) func manyOriginsLeaveLittleBehind() async throws {
        try await withServer(engine: .automatic) {
            $0.idleConnectionTime = .milliseconds(200)
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            func visit(_ numbers: Range<Int>) async throws {
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in numbers {
                        if number - numbers.lowerBound >= 64 { _ = try await group.next() }
                        group.addTask {
                            try await agent.send(Get("http://h\(number).localhost:\(server.port)/hello")).status
                        }
                    }
                    for try await status in group { #expect(status == 200) }
                }
                #expect(await eventually { agent.statistics.sockets == 0 && agent.statistics.origins.isEmpty })
            }
            try await visit(0..<500)
            let before = allocations_in_use()
            try await visit(500..<20_500)
            let after = allocations_in_use()
            #expect(after < before + 1_000_000, "\(before) bytes before, \(after) after")
            #expect(agent.statistics.forgottenOrigins.opened == 20_500)
        }
    }
    /// A password for each request, as for a proxy that chooses another address with it.
    @Test(.enabled(if: allocations_are_counted())) func manyUsersOfAProxyLeaveLittleBehind() async throws {
        try await withServer(engine: .automatic) { server, agent in
            let name = "h.localhost"
            server.script([
                .expectBytes(4), .sendBytes([5, 2]), .expectBytes(3 + 3 + 5), .sendBytes([1, 0]),
                .expectBytes(4 + 1 + name.utf8.count + 2), .sendBytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), .serve,
            ])
            func visit(_ numbers: Range<Int>) async throws {
                for number in numbers {
                    var request = HTTPRequest(.get, "http://\(name)/hello", headers: ["Connection": "close"])
                    request.proxy = .socks5(
                        "127.0.0.1", port: Int(server.port),
                        credential: Credential(user: "ann", password: "\(number)"))
                    #expect(try await agent.send(request).status == 200)
                }
            }
            try await visit(10_000..<10_500)
            let before = allocations_in_use()
            try await visit(10_500..<18_500)
            let after = allocations_in_use()
            #expect(after < before + 400_000, "\(before) bytes before, \(after) after")
        }
    }
}

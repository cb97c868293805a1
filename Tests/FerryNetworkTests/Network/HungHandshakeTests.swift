import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Connections whose handshake hangs, beside others to the same server that do not.
@Suite(.timeLimit(.minutes(1))) struct HungHandshakeTests {
    private func withAgent(
        _ change: (inout NetworkConfiguration) -> Void, _ body: (NetworkAgent, LoopbackServer) async throws -> Void
    ) async throws {
        try await withServer(.init(certificate: try ServerCertificate()), engine: .automatic) {
            $0.timeouts.connect = .seconds(5)
            change(&$0)
        } _: { server, agent in
            for path in ["/first", "/second"] {
                server.script(
                    path: path,
                    [
                        .expectHead, .mark(path), .wait(path),
                        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .serve,
                    ])
            }
            try await body(agent, server)
            await agent.shutdown(grace: .zero)
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    /// After half a second on the loop's clock, a handshake that has begun before counts as one that may hang. The loop
    /// tells nobody, and any request could use or open a connection.
    private func waitUntilItMayHang() async { await elapse(.milliseconds(600)) }

    @Test("A request is not bound to an older handshake that hangs", arguments: [64, 2])
    func anotherConnectionIsOpened(limit: Int) async throws {
        try await withAgent {
            $0.limits.transfersPerHost = limit
        } _: { agent, server in
            server.script(connection: 2, [.stallHandshake])
            let first = Task { try await agent.send(Get("/first")) }
            try await server.waitForMark("/first")
            // The first connection serves it, and the handshake of its own goes on.
            let second = Task { try await agent.send(Get("/second")) }
            try await server.waitForConnections(2)
            server.signal("/first")
            _ = try await first.value
            try await server.waitForMark("/second")
            await waitUntilItMayHang()
            let third = try await agent.send(Get("/hello"))
            #expect(!third.isReusedConnection && server.connectionCount == 3)
            // The limit of a host holds for connections that hang, too.
            if limit == 2 { try await server.waitForOpenConnections(atMost: 2) }
            server.signal("/second")
            #expect(try await second.value.isReusedConnection)
        }
    }

    @Test("A request is not bound to a connection opened ahead that hangs")
    func oneOpenedAheadIsReplaced() async throws {
        try await withAgent {
            $0.limits.minimumIdlePerHost = 1
        } _: { agent, server in
            server.script(connection: 2, [.stallHandshake])
            let first = Task { try await agent.send(Get("/first")) }
            try await server.waitForMark("/first")
            try await server.waitForConnections(2)
            await waitUntilItMayHang()
            #expect(try await agent.send(Get("/hello")).status == 200)
            // One for the request, and one in place of the one that hangs.
            try await server.waitForConnections(4)
            server.signal("/first")
            _ = try await first.value
        }
    }

    @Test("Connections opened ahead that all hang do not grow in number")
    func thoseThatHangAreBounded() async throws {
        try await withAgent {
            $0.limits.minimumIdlePerHost = 1
        } _: { agent, server in
            for connection in 2...20 { server.script(connection: connection, [.stallHandshake]) }
            for count in [2, 3, 3, 3] {
                #expect(try await agent.send(Get("/hello")).status == 200)
                try await server.waitForConnections(count)
                await waitUntilItMayHang()
                #expect(server.connectionCount == count)
            }
        }
    }
}

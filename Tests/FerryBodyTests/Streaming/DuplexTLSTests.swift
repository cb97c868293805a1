import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Exchanges over TLS.
@Suite(.timeLimit(.minutes(1))) struct DuplexTLSTests {
    private func withSecureExchanges(
        trusted: Bool = true, _ body: (NetworkAgent, LoopbackServer, HTTPRequest<Response>) async throws -> Void
    ) async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        var configuration = NetworkConfiguration(baseURL: "https://localhost:\(server.port)")
        configuration.engine = .automatic
        configuration.timeouts.idle = .seconds(10)
        if trusted { configuration.tls = TLSConfiguration(authorityFile: certificate.authorityFile) }
        let agent = NetworkAgent(configuration: configuration)
        try await body(agent, server, HTTPRequest(.post, "/x"))
        await agent.shutdown(grace: .zero)
        server.signal("over")
        try await server.waitForOpenConnections(atMost: 0)
    }

    @Test func anyAmountFlowsBothWays() async throws {
        try await withSecureExchanges { agent, server, _ in
            let count = 5_000_000
            let received = try await agent.exchange(DuplexTests.echo) { response, body in
                async let sent: Void = {
                    let bytes = LoopbackServer.pattern(0..<count)
                    for from in stride(from: 0, to: count, by: 70_000) {
                        try await body.write(bytes[from..<min(from + 70_000, count)])
                    }
                    try body.finish()
                }()
                let received = try await response.body.collect(upTo: count)
                try await sent
                return received
            }
            #expect(received == Data(LoopbackServer.pattern(0..<count)))
            #expect(try await agent.send(Get("/hello")).status == 200)
            #expect(server.connectionCount == 1, "the connection is kept")
        }
    }

    @Test func aServerThatReadsAfterItsResponseGetsTheWholeBody() async throws {
        try await withSecureExchanges { agent, server, request in
            server.script(path: "/x", [.send(answer("ok")), .expectBody, .mark("whole"), .serve])
            try await agent.exchange(request) { response, body in
                #expect(try await response.body.collect(upTo: 10) == Data("ok".utf8))
                try await DuplexEndTests.writeOn(body, most: 5_000_000)
                try body.finish()
            }
            try await server.waitForMark("whole")
        }
    }

    @Test(arguments: [false, true]) func anEndWithoutCloseNotifyIsNoEnd(isClean: Bool) async throws {
        try await withSecureExchanges { agent, server, request in
            server.script(path: "/x", [.expectBytes(8), .send("HTTP/1.1 200 OK\r\n\r\nabc"), isClean ? .close : .drop])
            var read = Data()
            do {
                read = try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    return try await response.body.collect(upTo: 10)
                }
            } catch let error as RequestError {
                // Whether the reset or the end is seen first is up to the kernel.
                let codes: [RequestError.Code] = [.incompleteBody(expected: nil, got: 3), .connectionReset]
                #expect(codes.contains(error.code), "\(error)")
            }
            #expect(read == (isClean ? Data("abc".utf8) : Data()))
        }
    }

    @Test func anUntrustedServerFailsBothSides() async throws {
        for writes in [true, false] {
            try await withSecureExchanges(trusted: false) { agent, server, request in
                let error = await exchangeError {
                    try await agent.exchange(request) { response, body in
                        if writes { try await DuplexEndTests.writeOn(body) } else { _ = try await response.head }
                    }
                }
                #expect(error?.code == .tls(.untrusted) && server.requestCount == 0)
            }
        }
    }

    @Test func itIsCancelledDuringTheHandshake() async throws {
        try await withSecureExchanges { agent, server, request in
            server.script(connection: 1, [.stallHandshake, .mark("there")])
            let task = Task {
                try await agent.exchange(request) { _, body in try await DuplexEndTests.writeOn(body) }
            }
            try await server.waitForConnections(1)
            task.cancel()
            #expect(await exchangeError { try await task.value }?.code == .cancelled)
            #expect(await eventually { agent.statistics.running == 0 })
        }
    }

    @Test func aResponseOfFailureStopsTheWriter() async throws {
        try await withSecureExchanges { agent, server, request in
            var request = request
            request.statusValidation = .any
            server.script(
                path: "/x",
                [
                    .expectBytes(100_000),
                    .send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), .close,
                ])
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    async let sent: Void = DuplexEndTests.writeOn(body)
                    #expect(try await response.body.collect(upTo: 10) == Data("no".utf8))
                    try await sent
                }
            }
            #expect(error?.code == .uploadStopped && error?.status == 413)
        }
    }
}

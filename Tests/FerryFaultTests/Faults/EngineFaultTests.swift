import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Rows R125 to R127: possible errors of an engine that parses HTTP/1.1 itself. Both engines are tested.
@Suite(.timeLimit(.minutes(3)), .faultTable) struct EngineFaultTests {
    static let engines: [TransferEngine] = [.libcurl, .automatic]

    private func withEngine(
        _ engine: TransferEngine, secure: Bool = false, _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        let options = secure ? LoopbackServer.Options(certificate: try ServerCertificate()) : .init()
        try await withServer(options, engine: engine, configure) { server, agent in
            try await body(server, agent)
            await agent.shutdown()
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    // MARK: R125

    @Test("R125: the result does not depend on how a response is split", arguments: engines, [false, true])
    func splits(engine: TransferEngine, secure: Bool) async throws {
        let chunked =
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "5;x=\"y\"\r\nhello\r\n7\r\n, world\r\n0\r\nX-Trailer: z\r\n\r\n"
        try await withEngine(engine, secure: secure) { server, agent in
            for size in [1, 2, 3, 5, 7, 11, 13, 17, 64, chunked.utf8.count] {
                let path = "/split\(size)/"
                server.script(
                    path: path, [.expectHead, .drip(chunked, interval: .milliseconds(1), chunk: size), .serve])
                let response = try await agent.send(Get(path))
                #expect(response.text == "hello, world" && response.status == 200, "\(size)")
                #expect(response.headers["X-A"] == "b", "\(size)")
                #expect(try await agent.send(Get("/hello")).text == "Hello, ferry", "\(size)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(
        "R125: bytes after a response belong to no request, and its connection is closed", arguments: engines,
        [false, true])
    func bytesBehindTheEnd(engine: TransferEngine, secure: Bool) async throws {
        let first = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
        for poison in ["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", "x", "\r\n"] {
            try await withEngine(engine, secure: secure) { server, agent in
                server.script(path: "/first", [.expectHead, .send(first + poison), .expectClose, .mark("closed")])
                #expect(try await agent.send(Get("/first")).text == "first")
                #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
                try await server.waitForMark("closed")
                #expect(server.connectionCount == 2)
            }
        }
    }

    @Test("R125: bytes that arrive before the request are not its response", arguments: engines, [false, true])
    func bytesBeforeTheRequest(engine: TransferEngine, secure: Bool) async throws {
        try await withEngine(engine, secure: secure) { server, agent in
            server.script(
                path: "/first",
                [
                    .expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"), .wait("kept"),
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"), .keepOpen,
                ])
            #expect(try await agent.send(Get("/first")).text == "first")
            server.signal("kept")
            try await server.waitForOpenConnections(atMost: 0)
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
            #expect(server.connectionCount == 2)
        }
    }

    @Test(
        "R125: a reader that pauses gets every byte, including those that TLS holds", arguments: engines, [false, true])
    func pausedReader(engine: TransferEngine, secure: Bool) async throws {
        try await withEngine(engine, secure: secure) { server, agent in
            for size in [10, 16_383, 16_384, 16_385, 300_000] {
                let stream = try await agent.stream(Get("/bytes/\(size)"))
                var bytes: [UInt8] = []
                for try await piece in stream.body {
                    bytes += piece
                    await Task.yield()
                }
                #expect(bytes == LoopbackServer.pattern(0..<size), "\(size)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test("R125: a request takes the first free connection, not the one dialed for it")
    func lateBinding() async throws {
        try await withEngine(.automatic, secure: true) { server, agent in
            server.script(connection: 2, [.stallHandshake])
            server.script(path: "/first", [.expectHead, .mark("asked"), .wait("go"), .send(answer("first")), .serve])
            async let first = agent.send(Get("/first"))
            try await server.waitForMark("asked")
            async let second = agent.send(Get("/hello"))
            try await server.waitForConnections(2)
            server.signal("go")
            #expect(try await first.text == "first")
            #expect(try await second.text == "Hello, ferry")
        }
    }

    // MARK: R126

    /// If they differ, the manual says so and why.
    @Test("R126: both engines report broken responses alike", arguments: EngineCase.all)
    func sameOutcome(of broken: EngineCase) async throws {
        var told: [String] = []
        for engine in Self.engines {
            try await withEngine(engine, { $0.timeouts.idle = .milliseconds(400) }) { server, agent in
                server.script(path: "/fault", uses: 1, LoopbackScript([.expectHead] + broken.steps))
                told.append(await outcome(of: broken.request, by: agent))
                // And the next request has its own response.
                let next = try await agent.send(Get("/hello"))
                #expect(next.text == "Hello, ferry")
            }
        }
        #expect(told == [broken.libcurl ?? broken.outcome, broken.outcome], "\(broken)")
    }

    private func outcome(of request: some Request<Response>, by agent: NetworkAgent) async -> String {
        do throws(RequestError) {
            let response = try await agent.send(request)
            return "\(response.status) \(response.text)"
        } catch {
            return "\(error.code) \(error.phase) \(error.mayHaveBeenProcessed)"
        }
    }

    // MARK: R127

    @Test("R127: a thousand running connections, some reset, some cancelled: one result each", arguments: engines)
    func manyAtWork(engine: TransferEngine) async throws {
        let count = 1_000
        let before = openDescriptorCount()
        try await withEngine(
            engine,
            {
                $0.limits.maxConcurrentTransfers = count
                $0.limits.transfersPerHost = count
            }
        ) { server, agent in
            server.script(
                path: "/reset", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .reset])
            server.script(path: "/silent", [.expectHead, .mark("silent"), .keepOpen])
            let ends = await withTaskGroup(of: String.self) { group in
                var silent: [Task<String, Never>] = []
                for number in 0..<count * 3 {
                    switch number % 10 {
                    case 3: group.addTask { await outcome(of: Get("/reset?\(number)"), by: agent) }
                    case 7 where number < count:
                        silent.append(Task { await outcome(of: Get("/silent?\(number)"), by: agent) })
                    default: group.addTask { await outcome(of: Get("/bytes/\(number % 50)"), by: agent) }
                    }
                }
                try? await server.waitForMark("silent", count: silent.count)
                for task in silent { task.cancel() }
                var ends = await group.reduce(into: []) { $0.append($1) }
                for task in silent { ends.append(await task.value) }
                return ends
            }
            #expect(ends.count == count * 3)
            #expect(ends.count { $0.hasPrefix("200 ") } == count * 3 - count * 3 / 10 - count / 10)
            #expect(ends.count { $0.hasPrefix("cancelled ") } == count / 10)
            #expect(
                ends.count { $0.hasPrefix("connectionReset ") } == count * 3 / 10,
                "\(Set(ends.filter { !$0.hasPrefix("200") }))")
            // The loop publishes its figures at the end of a turn, after the last result.
            #expect(await eventually { agent.statistics.running == 0 && agent.statistics.waiting == 0 })
        }
        #expect(await eventually { openDescriptorCount() <= before + 8 })
    }
}

private func openDescriptorCount() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
}

import FaultTable
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Streamed responses: the effect of slow and impatient readers on a server (rows R69 and R74).
@Suite(.timeLimit(.minutes(2)), .faultTable) struct StreamReaderTests {
    // MARK: Backpressure

    @Test("R69: the server cannot send more than is read")
    func unreadBodyStopsTheServer() async throws {
        try await withFlow { server, agent in
            let size = 100_000_000
            server.script(
                path: "/big",
                [.send(head("200 OK", "Content-Length: \(size)\r\n")), .pattern(bytes: size), .mark("sent"), .serve])
            let isSent = Mutex(false)
            let watch = Task {
                try await server.waitForMark("sent")
                isSent.withLock { $0 = true }
            }
            let response = try await agent.stream(Get("/big"))
            // Event loop and server work meanwhile, on the same threads.
            for _ in 0..<100 { #expect(try await agent.send(Get("/bytes/100000")).status == 200) }
            #expect(!isSent.withLock { $0 })
            var bytes = 0
            let end = await response.body.failure(into: &bytes)
            #expect(end == nil)
            #expect(bytes == size)
            try await watch.value
        }
    }

    // The sanitizers keep freed memory.
    #if !FERRY_TSAN && !FERRY_ASAN
    @Test("R69: a body of 1 GB costs no memory, however slowly it is read")
    func memoryOfLargeBody() async throws {
        try await withFlow { server, agent in
            let size = 1_000_000_000
            // Memory that is allocated once.
            var warm = 0
            _ = try await agent.stream(Get("/bytes/20000000")).body.failure(into: &warm)
            var call = HTTPRequest(.get, "/bytes/\(size)")
            // A reader that makes the server wait does not make it idle.
            call.deadline = .seconds(100)
            let start = ProcessHoldings.memory
            var peak = start
            var bytes = 0
            let response = try await agent.stream(call)
            var next = 0
            for try await piece in response.body {
                bytes += piece.count
                if bytes < next { continue }
                next += 20_000_000
                try await Task.sleep(for: .milliseconds(5))
                peak = max(peak, ProcessHoldings.memory)
            }
            #expect(bytes == size)
            #expect(peak - start < 8 << 20, "it grew by \(peak - start) bytes")
        }
    }
    #endif

    @Test("R69: an idle timeout counts the server's silence, not the reader's")
    func slowReaderIsNotAnIdleServer() async throws {
        try await withFlow {
            $0.timeouts = Timeouts(idle: .milliseconds(500))
        } _: { server, agent in
            let response = try await agent.stream(Get("/bytes/30000000"))
            var iterator = response.body.makeAsyncIterator()
            var bytes = try await iterator.next()?.count ?? 0
            await agent.pass(.milliseconds(1500), server)
            while let piece = try await iterator.next() { bytes += piece.count }
            #expect(bytes == 30_000_000)
        }
    }

    @Test("R69: nor does the minimum rate count the reader's time; the server waits, and memory stays bounded")
    func slowReaderIsNotASlowServer() async throws {
        try await withFlow {
            // More than the reader takes, and far less than the server offers.
            let lowSpeed = Timeouts.LowSpeed(bytesPerSecond: 3_000_000, time: .seconds(1))
            $0.timeouts = Timeouts(lowSpeed: lowSpeed)
        } _: { server, agent in
            let size = 1_000_000_000
            server.script(
                path: "/big",
                [.send(head("200 OK", "Content-Length: \(size)\r\n")), .pattern(bytes: size), .mark("sent"), .keepOpen])
            let isSent = Mutex(false)
            let watch = Task {
                try await server.waitForMark("sent")
                isSent.withLock { $0 = true }
            }
            let response = try await agent.stream(Get("/big"))
            var iterator = response.body.makeAsyncIterator()
            var bytes = try await iterator.next()?.count ?? 0
            let (start, warm) = (ContinuousClock.now, ProcessHoldings.memory)
            // A megabyte per second, for three.
            for round in 1...30 {
                while bytes < round * 100_000 { bytes += try await iterator.next()?.count ?? 0 }
                try await ContinuousClock().sleep(until: start + .milliseconds(round * 100))
            }
            #expect(ProcessHoldings.memory - warm < 8 << 20)
            #expect(bytes < size / 100 && !isSent.withLock { $0 })
            watch.cancel()
            _ = await watch.result
        }
    }

    // MARK: Readers that leave

    @Test("R74: a short rest is read to its end, and the connection is kept")
    func shortRestKeepsTheConnection() async throws {
        try await withFlow { server, agent in
            for path in ["/bytes/60000", "/bytes/1", "/bytes/0", "/gzip/60000"] {
                for reads in [0, 1] {
                    try await leave(agent, path, after: reads)
                    #expect(await eventually { agent.statistics.running == 0 })
                }
            }
            #expect(try await agent.send(Get("/hello")).isReusedConnection)
            #expect(server.connectionCount == 1)
        }
    }

    @Test("R74: so is the short rest of a long body")
    func shortEndKeepsTheConnection() async throws {
        try await withFlow { server, agent in
            let response = try await agent.stream(Get("/bytes/1000000"))
            var iterator: ResponseBody.Iterator? = response.body.makeAsyncIterator()
            var bytes = 0
            while bytes < 950_000 { bytes += try await iterator?.next()?.count ?? 0 }
            iterator = nil
            _ = consume response
            #expect(await eventually { agent.statistics.running == 0 })
            #expect(try await agent.send(Get("/hello")).isReusedConnection)
        }
    }

    @Test(
        "R74: with a long rest, or one of unknown length, the connection is closed",
        arguments: ["/bytes/1000000000", "/chunked/1000000000"])
    func longRestIsClosed(path: String) async throws {
        try await withFlow { server, agent in
            for reads in [0, 1] {
                try await leave(agent, path, after: reads)
                try await server.waitForOpenConnections(atMost: 0)
            }
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
            #expect(server.connectionCount == 3)
        }
    }

    @Test("R74: a server that is slow with a short rest is not waited for")
    func slowShortRest() async throws {
        try await withFlow { server, agent in
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 100\r\n") + "abc"), .keepOpen])
            try await leave(agent, "/x", after: 1)
            try await server.waitForOpenConnections(atMost: 0)
            #expect(await eventually { agent.statistics.running == 0 })
        }
    }

    private func leave(_ agent: NetworkAgent, _ path: String, after reads: Int) async throws {
        let response = try await agent.stream(Get(path))
        var left = reads
        if left == 0 { return }
        for try await _ in response.body {
            left -= 1
            if left == 0 { break }
        }
    }
}

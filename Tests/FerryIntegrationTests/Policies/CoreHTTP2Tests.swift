import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import FerryTestSupport

/// HTTP/2 of the transport itself: what the agent's results do not show, such as the number of connections.
@Suite(.serialized, .timeLimit(.minutes(2))) struct CoreHTTP2Tests {
    private func transport(_ http2: TransportConfiguration.HTTP2) throws -> ResultCollector {
        var configuration = TransportConfiguration()
        configuration.authorityFile = try Certificates.shared.authorityFile
        configuration.http2 = http2
        configuration.maxTransfersPerHost = 1_000
        return try ResultCollector(configuration)
    }

    private func expectAll(
        _ count: Int, _ collector: ResultCollector, _ url: String, _ check: (TransferResult) -> Bool
    ) async throws {
        let ids = try (0..<count).map { _ in try collector.submit(TransferRequest(url: url)) }
        for id in ids {
            let result = await collector.result(of: id)
            #expect(result.succeeded && check(result), "\(String(describing: result.failure))")
        }
    }

    @Test("a thousand transfers at once share one connection, which is kept")
    func oneConnection() async throws {
        let server = try NGHTTPServer()
        let collector = try transport(.negotiated)
        defer { collector.transport.shutdown() }
        for _ in 0..<3 {
            try await expectAll(1_000, collector, server.url("/hello.txt")) { result in
                result.httpVersion == 20 && result.body.count == 12 && result.attempts == 1
            }
        }
        #expect(collector.transport.statistics.connectionsOpened == 1)
    }

    @Test("long and short bodies are transferred side by side")
    func sideBySide() async throws {
        let server = try NGHTTPServer()
        let collector = try transport(.negotiated)
        defer { collector.transport.shutdown() }
        let large = try (0..<20).map { _ in try collector.submit(TransferRequest(url: server.url("/1m.bin"))) }
        try await expectAll(200, collector, server.url("/hello.txt")) { $0.body.count == 12 }
        for id in large {
            let result = await collector.result(of: id)
            #expect(result.succeeded && result.body.count == 1_048_576)
        }
        #expect(collector.transport.statistics.connectionsOpened == 1)
    }

    @Test("cancelled streams leave the others alone")
    func cancels() async throws {
        let server = try NGHTTPServer()
        let collector = try transport(.negotiated)
        defer { collector.transport.shutdown() }
        try await expectAll(1, collector, server.url("/hello.txt")) { $0.httpVersion == 20 }
        let ids = try (0..<90).map { _ in try collector.submit(TransferRequest(url: server.url("/1m.bin"))) }
        for (i, id) in ids.enumerated() where i % 3 == 0 { collector.transport.cancel(id) }
        for (i, id) in ids.enumerated() {
            let result = await collector.result(of: id)
            if i % 3 != 0 { #expect(result.succeeded && result.body.count == 1_048_576) }
        }
        try await expectAll(10, collector, server.url("/hello.txt")) { $0.isReusedConnection }
    }

    @Test("HTTP/2 works without TLS by prior knowledge")
    func priorKnowledge() async throws {
        let server = try FaultyHTTP2Server(isSecure: false)
        let collector = try transport(.priorKnowledge)
        defer { collector.transport.shutdown() }
        for count in [1, 1, 30] {
            try await expectAll(count, collector, server.url("/bytes/1000")) {
                $0.httpVersion == 20 && $0.body.count == 1_000
            }
        }
    }

    @Test("a POST that a GOAWAY left out is sent again, and so is a refused one")
    func unprocessedPosts() async throws {
        let server = try FaultyHTTP2Server.shared
        let collector = try transport(.negotiated)
        defer { collector.transport.shutdown() }
        // On a new connection, and on a kept one.
        for path in ["/refuse/1?id=core0", "/goaway?id=core1", "/goaway?id=core2", "/refuse/1?id=core3"] {
            var post = TransferRequest(url: server.url(path))
            post.method = "POST"
            post.isIdempotent = false
            post.body = .bytes([1, 2, 3])
            let result = await collector.result(of: try collector.submit(post))
            #expect(result.succeeded && result.status == 200, "\(path) \(String(describing: result.failure))")
            #expect(result.attempts == 2)
            try await expectAll(1, collector, server.url("/bytes/10")) { $0.httpVersion == 20 }
        }
        // A request that may have been processed is not.
        for path in ["/reset/2?id=core4", "/reset/8?id=core5"] {
            var post = TransferRequest(url: server.url(path))
            post.method = "POST"
            post.isIdempotent = false
            post.body = .bytes([1, 2, 3])
            let result = await collector.result(of: try collector.submit(post))
            #expect(result.failure?.code == .http2Stream && result.mayHaveBeenProcessed && result.attempts == 1)
            #expect(try server.requests(path).count == 1)
        }
    }
}

/// A transport and its receiver, which keeps the results.
private final class ResultCollector: TransferReceiver {
    private struct State {
        var ids: UInt64 = 0
        var results: [TransferID: TransferResult] = [:]
        var waiters: [TransferID: CheckedContinuation<TransferResult, Never>] = [:]
    }

    private let state = Mutex(State())
    let transport: Transport

    init(_ configuration: TransportConfiguration) throws {
        transport = try Transport(configuration)
        transport.attach(self)
    }

    func transfersFinished(_ results: [TransferResult]) {
        for result in results {
            let waiter = state.withLock { state in
                state.results[result.id] = result
                return state.waiters.removeValue(forKey: result.id)
            }
            waiter?.resume(returning: result)
        }
    }

    func submit(_ request: TransferRequest) throws -> TransferID {
        let id = state.withLock { state in
            state.ids += 1
            return state.ids
        }
        try transport.submit(request, id: id)
        return id
    }

    func result(of id: TransferID) async -> TransferResult {
        await withCheckedContinuation { continuation in
            let result = state.withLock { state in
                if state.results[id] == nil { state.waiters[id] = continuation }
                return state.results[id]
            }
            if let result { continuation.resume(returning: result) }
        }
    }
}

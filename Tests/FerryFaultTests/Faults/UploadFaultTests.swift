import FaultTable
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R48 for pulled bodies: below the agent, whose own bodies are in memory here.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct UploadFaultTests {
    /// Provides pieces of a body, and ends as the case says.
    private final class Source: TransferReceiver {
        private struct State {
            var fills: [TransferFill]
            var result: TransferResult?
            var waiter: CheckedContinuation<TransferResult, Never>?
            var count = 0
        }
        private let state: Mutex<State>

        init(_ fills: [TransferFill]) { state = Mutex(State(fills: fills)) }

        var count: Int { state.withLock { $0.count } }

        func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill {
            let fill = state.withLock { $0.fills.isEmpty ? TransferFill.end : $0.fills.removeFirst() }
            guard case .bytes(let count) = fill else { return fill }
            for index in 0..<min(count, space.count) { space[index] = 0x61 }
            return fill
        }

        func transfersFinished(_ results: [TransferResult]) {
            let waiter = state.withLock { state in
                state.count += results.count
                state.result = results.first
                return state.waiter.take()
            }
            if let first = results.first { waiter?.resume(returning: first) }
        }

        var result: TransferResult {
            get async {
                await withCheckedContinuation { continuation in
                    let result = state.withLock { state in
                        if state.result == nil { state.waiter = continuation }
                        return state.result
                    }
                    if let result { continuation.resume(returning: result) }
                }
            }
        }
    }

    private func upload(
        _ fills: [TransferFill], length: UInt64?, to server: LoopbackServer
    ) async throws -> RequestError? {
        let transport = try Transport()
        let source = Source(fills)
        transport.attach(source)
        var request = TransferRequest(url: server.baseURL + "/upload")
        request.method = "PUT"
        request.body = .pull(length: length)
        try transport.submit(request, id: 1)
        let result = await source.result
        #expect(source.count == 1)
        transport.shutdown()
        try await server.waitForOpenConnections(atMost: 0)
        #expect(await eventually { transport.isAtRest })
        return result.failure.map { RequestError($0, of: result, url: request.url) }
    }

    @Test("R48: a source that fails midway leaves an incomplete message", arguments: [UInt64(100_000), nil])
    func failsMidway(length: UInt64?) async throws {
        let server = try LoopbackServer()
        let error = try #require(try await upload([.bytes(1000), .bytes(1000), .failed], length: length, to: server))
        check(
            error, ExpectedFault(code: .uploadSource, phases: [.send], processed: true, attempts: 1, received: 0),
            url: server.baseURL + "/upload")
        #expect(error.bytesSent > 0)
        // The server received the head and perhaps a part, but never an end: it has not responded.
        #expect(server.requests.allSatisfy { $0.bodyLength <= 2000 })
    }

    @Test(
        "R48: so does one that fails at once, or ends before its length",
        arguments: [[TransferFill.failed], [.end], [.bytes(10), .end]])
    func endsEarly(fills: [TransferFill]) async throws {
        let server = try LoopbackServer()
        let error = try #require(try await upload(fills, length: 100, to: server))
        #expect(error.code == .uploadSource)
        #expect(server.requests.allSatisfy { $0.bodyLength < 100 })
    }

    @Test("R48: a correct source succeeds, with a length and without", arguments: [UInt64(3000), nil])
    func good(length: UInt64?) async throws {
        let server = try LoopbackServer()
        #expect(try await upload([.bytes(1000), .bytes(1500), .bytes(500)], length: length, to: server) == nil)
        let request = try #require(server.requests.first)
        #expect(request.body == [UInt8](repeating: 0x61, count: 3000))
        #expect(request.headers["Content-Length"] == length.map(String.init))
        #expect(request.headers["Transfer-Encoding"] == (length == nil ? "chunked" : nil))
    }
}

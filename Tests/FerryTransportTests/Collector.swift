import FerrySynchronization
import FerryTransport

/// A transport and its receiver, which keeps the results.
final class Collector: TransferReceiver {
    private struct State {
        var ids: UInt64 = 0
        var results: [TransferID: TransferResult] = [:]
        var waiters: [TransferID: CheckedContinuation<TransferResult, Never>] = [:]
    }

    private let state = Mutex(State())
    let transport: Transport

    init(_ configuration: TransportConfiguration = TransportConfiguration()) throws {
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

    /// Runs a transfer on the loop with this number.
    func run(_ request: TransferRequest, loop: UInt64 = 0) async throws -> TransferResult {
        let id = state.withLock { state in
            state.ids += 1
            return loop << 56 | state.ids
        }
        try transport.submit(request, id: id)
        return await withCheckedContinuation { continuation in
            let result = state.withLock { state in
                if state.results[id] == nil { state.waiters[id] = continuation }
                return state.results[id]
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    func get(_ url: String, loop: UInt64 = 0) async throws -> TransferResult {
        try await run(TransferRequest(url: url), loop: loop)
    }
}

extension TransferRequest {
    func with(_ change: (inout TransferRequest) -> Void) -> TransferRequest {
        var copy = self
        change(&copy)
        return copy
    }
}

import CFerry
import FerrySynchronization
import Testing

/// What the callbacks of one loop have reported: the context pointer of the loop. Every change wakes the waiters.
final class CoreRecord: Sendable {
    enum Event: Sendable, Equatable {
        case started
        case head(status: Int)
        case informational(String)
        case body(Int)
        /// With the trailers.
        case answered(String)
        case pull
        case finished
    }

    struct Waiter {
        var isReached: @Sendable (borrowing State) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    struct State {
        var requests: [UInt64: CoreRequest] = [:]
        var events: [UInt64: [Event]] = [:]
        var streamed: [UInt64: [UInt8]] = [:]
        var heads: [UInt64: CoreResult] = [:]
        /// The reports of on_written, in order.
        var written: [UInt64: [UInt64]] = [:]
        /// All results of each id: more than one is a bug of the core.
        var results: [UInt64: [CoreResult]] = [:]
        /// Ids in the order in which they started and ended.
        var startOrder: [UInt64] = []
        var finishOrder: [UInt64] = []
        /// The results themselves, if the loop keeps them.
        var kept: [KeptResult] = []
        var calls = 0
        /// What the loop's thread had allocated up to the last result.
        var allocations = 0
        var isStopped = false
        /// Callbacks after on_stopped, which are a bug of the core.
        var late = 0
        var waits = 0
        var waiters: [Int: Waiter] = [:]
    }

    private let state = Mutex(State())
    let keepsResults: Bool

    init(keepsResults: Bool) { self.keepsResults = keepsResults }

    func read<R: Sendable>(_ look: (inout State) -> R) -> R {
        state.withLock { look(&$0) }
    }

    /// Changes the state and wakes waiters whose condition is met.
    func change(_ change: (inout State) -> Void) {
        let ready = state.withLock { state in
            if state.isStopped { state.late += 1 }
            change(&state)
            let ready = state.waiters.filter { $0.value.isReached(state) }
            for number in ready.keys { state.waiters[number] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Waits until the state meets a condition. After half a minute an issue is recorded, and the test continues.
    func until(
        _ isReached: @escaping @Sendable (borrowing State) -> Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        let watchdog = Task {
            try await Task.sleep(for: .seconds(25))
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            guard let waiter else { return }
            Issue.record("what was awaited never came", sourceLocation: sourceLocation)
            waiter.continuation.resume()
        }
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if isReached(state) { return true }
                state.waiters[number] = Waiter(isReached: isReached, continuation: continuation)
                return false
            }
            if isReady { continuation.resume() }
        }
        watchdog.cancel()
    }

    func finished(_ result: CoreResult) {
        change { state in
            state.events[result.id, default: []].append(.finished)
            state.results[result.id, default: []].append(result)
            state.finishOrder.append(result.id)
        }
        read { $0.requests[result.id]?.onFinished }?(result)
    }

    /// The last callback. The closures of the requests may hold the loop, which holds this.
    func stopped() {
        change { state in
            state.isStopped = true
            for id in state.requests.keys {
                state.requests[id]?.onBody = nil
                state.requests[id]?.onPull = nil
                state.requests[id]?.onTrailers = nil
                state.requests[id]?.onStarted = nil
                state.requests[id]?.onFinished = nil
            }
        }
    }

    func started(_ id: UInt64) {
        change { state in
            state.events[id, default: []].append(.started)
            state.startOrder.append(id)
        }
        read { $0.requests[id]?.onStarted }?()
    }

    func head(_ id: UInt64, _ soFar: CoreResult) {
        change { state in
            state.events[id, default: []].append(.head(status: soFar.status))
            state.heads[id] = soFar
        }
    }

    func body(_ id: UInt64, _ bytes: [UInt8]) -> Int {
        change { state in
            state.events[id, default: []].append(.body(bytes.count))
            state.streamed[id, default: []] += bytes
        }
        return read { $0.requests[id]?.onBody }?(bytes) ?? FERRY_CONTINUE
    }

    func tell(_ id: UInt64, _ event: Event) { change { $0.events[id, default: []].append(event) } }

    func trailers(_ id: UInt64, _ space: UnsafeMutableRawBufferPointer) -> Int {
        read { $0.requests[id]?.onTrailers }?(space) ?? FERRY_ABORT
    }

    func pull(_ id: UInt64, _ space: UnsafeMutableRawBufferPointer) -> Int {
        change { $0.events[id, default: []].append(.pull) }
        return read { $0.requests[id]?.onPull }?(space) ?? FERRY_ABORT
    }
}

import Synchronization

/// A value that comes once, for one task that waits for it. Of several the first counts.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case finished(Value)
        case over
    }

    private let state = Mutex(State.open)

    /// The value is here. Any thread, any number of times.
    func finish(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .finished(value)
                return nil
            case .awaited(let waiter):
                state = .over
                return waiter
            case .finished, .over: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    /// Waits for it, once.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if case .finished(let value) = state {
                    state = .over
                    return value
                }
                state = .awaited(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

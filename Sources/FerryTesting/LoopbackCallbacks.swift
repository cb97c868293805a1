internal import CLoopback
internal import Synchronization

/// What the C callbacks find: handlers by number, those who wait by watch. It outlives the server's thread.
final class LoopbackCallbacks: Sendable {
    typealias Continuation = CheckedContinuation<Void, any Error>

    private enum Watch {
        case new
        case cancelled
        case waiting(Continuation)
    }

    private struct State {
        var handlers: [UInt64: LoopbackServer.Handler] = [:]
        var watches: [UInt64: Watch] = [:]
        var next: UInt64 = 1
        var isStopped = false
    }

    private let state = Mutex(State())
    /// The address of the C server, 0 before it is made and once it is about to be freed. Held while an answer is
    /// given, so that no answer meets a freed server.
    private let server = Mutex<UInt>(0)

    func attach(_ address: UInt) {
        server.withLock { $0 = address }
    }

    // MARK: Handlers

    func add(_ handler: @escaping LoopbackServer.Handler) -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            if !state.isStopped { state.handlers[state.next] = handler }
            return state.next
        }
    }

    func handler(_ number: UInt64) -> LoopbackServer.Handler? {
        state.withLock { $0.handlers[number] }
    }

    func answer(_ id: UInt64, _ response: LoopbackResponse) {
        let head = response.headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        let status = Int32(clamping: response.status)
        server.withLock { address in
            guard let pointer = OpaquePointer(bitPattern: address) else { return }
            let length = head.utf8.count
            response.body.withUnsafeBytes { body in
                if let reason = response.reason {
                    loopback_answer(pointer, id, status, reason, head, length, body.baseAddress, body.count)
                } else {
                    loopback_answer(pointer, id, status, nil, head, length, body.baseAddress, body.count)
                }
            }
        }
    }

    // MARK: Watches

    func newWatch() -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.watches[state.next] = .new
            return state.next
        }
    }

    /// False when the watch has ended already; the continuation is resumed then.
    func begin(watch: UInt64, _ continuation: Continuation) -> Bool {
        let failure: (any Error)? = state.withLock { state in
            if case .cancelled = state.watches[watch] {
                state.watches[watch] = nil
                return CancellationError()
            }
            if state.isStopped {
                state.watches[watch] = nil
                return LoopbackError.stopped
            }
            state.watches[watch] = .waiting(continuation)
            return nil
        }
        if let failure { continuation.resume(throwing: failure) }
        return failure == nil
    }

    func reached(watch: UInt64) {
        let ended = state.withLock { $0.watches.removeValue(forKey: watch) }
        if case .waiting(let continuation) = ended { continuation.resume() }
    }

    func cancel(watch: UInt64) {
        let ended = state.withLock { state in
            let found = state.watches.removeValue(forKey: watch)
            if case .new = found { state.watches[watch] = .cancelled }
            return found
        }
        if case .waiting(let continuation) = ended { continuation.resume(throwing: CancellationError()) }
    }

    /// The server's thread ends: nobody will be told anything any more, and handlers let go of what they hold, outside
    /// the lock, as that may be the server itself.
    func stop() {
        let old = state.withLock { state in
            let old = state
            state.isStopped = true
            state.handlers = [:]
            state.watches = [:]
            return old
        }
        for case .waiting(let continuation) in old.watches.values {
            continuation.resume(throwing: LoopbackError.stopped)
        }
    }
}

internal import Chiredis
internal import Dispatch
internal import FerryCache
import FerrySynchronization
internal import Glibc

/// Takes commands from any thread and runs them on its own thread, without blocking a caller.
final class RedisLoop: Sendable {
    /// A command and its deadline.
    struct Item: Sendable {
        var command: RedisCommand
        var deadline: UInt64
    }

    enum Role: Sendable { case commands, removals }

    struct Arrival: Sendable {
        var role: Role
        var result: Result<RedisConnection, RedisFault>
    }

    /// The work that the thread finds when it wakes up.
    struct Taken {
        var looks: [Item] = []
        var changes: [Item] = []
        var arrivals: [Arrival] = []
        var isClosed = false
    }

    private struct State {
        var taken = Taken()
        var circuit: RedisCircuit
        var changeBytes = 0
        var isWoken = false
        var isStarted = false
        var hasEnded = false
        var closings: [@Sendable () -> Void] = []

        /// Whether the thread must be woken; `false` if it is already being woken.
        mutating func wakes() -> Bool {
            defer { isWoken = true }
            return !isWoken
        }

        /// Whether the thread must be created.
        mutating func starts() -> Bool {
            defer { isStarted = true }
            return !isStarted
        }
    }

    let configuration: RedisConfiguration
    let removals = RemovalsOfOthers()
    let owed = OwedRemovals()
    private let state: Mutex<State>
    /// Concurrent, so that lookups do not wait for a connection of the other role. There is at most one of each.
    private let connecting = DispatchQueue(label: "ferry.redis.connecting", attributes: .concurrent)
    /// Wakes the thread.
    let event: Int32

    init(_ configuration: RedisConfiguration) {
        self.configuration = configuration
        event = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        state = Mutex(
            State(
                circuit: RedisCircuit(
                    maxFailures: configuration.maxFailures, pause: configuration.pause,
                    longestPause: configuration.longestPause)))
    }

    deinit { if event >= 0 { Glibc.close(event) } }

    // MARK: From any thread

    func submit(_ command: RedisCommand) {
        let now = monotonicTime()
        let (refusal, wakes, starts) = state.withLock { state -> (RedisCommand.Outcome?, Bool, Bool) in
            if state.taken.isClosed || event < 0 { return (.refused, false, false) }
            // A command larger than the limit is accepted if no other one waits.
            let sum = state.changeBytes + command.bytes
            if command.bytes > 0 && state.changeBytes > 0 && sum > configuration.maxQueuedBytes {
                return (.full, false, false)
            }
            guard state.circuit.allows(at: now) else { return (.refused, false, false) }
            state.changeBytes = sum
            let item = Item(command: command, deadline: now &+ command.patience)
            switch command.line {
            case .look: state.taken.looks.append(item)
            case .change: state.taken.changes.append(item)
            }
            return (nil, state.wakes(), state.starts())
        }
        if starts { start() }
        if wakes { wake() }
        if let refusal { command.finish(refusal) }
    }

    var isPaused: Bool { state.withLock { $0.circuit.isOpen } }
    var queuedBytes: Int { state.withLock { $0.changeBytes } }

    func close(_ done: @escaping @Sendable () -> Void) {
        let (hasEnded, wakes) = state.withLock { state -> (Bool, Bool) in
            state.taken.isClosed = true
            if !state.isStarted || state.hasEnded { return (true, false) }
            state.closings.append(done)
            return (false, state.wakes())
        }
        if wakes { wake() }
        if hasEnded { done() }
    }

    /// A removal must be repeated. The thread may sleep without knowing that: a refused command never reached it.
    func leave(_ name: String, _ number: UInt64, isUntold: Bool = true) {
        owed.leave(name, number, isUntold: isUntold)
        wakeForRemovals()
    }

    /// Other processes must be told of a removal of all entries.
    func leaveUntold() {
        owed.leaveUntold()
        wakeForRemovals()
    }

    private func wakeForRemovals() {
        let wakes = state.withLock { state in
            if !state.isStarted || state.hasEnded { return false }
            return state.wakes()
        }
        if wakes { wake() }
    }

    private func wake() { _ = eventfd_write(event, 1) }

    private func start() {
        var thread = pthread_t()
        let loop = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread, nil,
            { loop in
                if let loop { RedisWorker(Unmanaged<RedisLoop>.fromOpaque(loop).takeRetainedValue()).run() }
                return nil
            }, loop.toOpaque())
        if code == 0 { _ = pthread_detach(thread) } else { loop.takeRetainedValue().ended(by: .other) }
    }

    // MARK: From the thread

    /// The work since the last call.
    func take() -> Taken {
        state.withLock { state in
            state.isWoken = false
            let taken = state.taken
            state.taken = Taken()
            state.taken.isClosed = taken.isClosed
            return taken
        }
    }

    /// Whether changes have been added since the last call of `take()`.
    var hasNewChanges: Bool { state.withLock { !$0.taken.changes.isEmpty } }

    /// Connects on another thread, because resolving the host name may take seconds.
    func connect(_ role: Role) {
        connecting.async { [self] in
            let result = Result { () throws(RedisFault) in try RedisConnection(configuration) }
            let wakes = state.withLock { state in
                if state.hasEnded { return false }
                state.taken.arrivals.append(Arrival(role: role, result: result))
                return state.wakes()
            }
            if wakes { wake() }
        }
    }

    func finished(bytes: Int) { state.withLock { $0.changeBytes -= bytes } }

    /// The end of the circuit's pause, 0 without one; `nil` while a command tests Redis.
    var pauseEnd: UInt64? { state.withLock { $0.circuit.pauseEnd } }

    /// Reports to the circuit whether Redis replied in time.
    func noted(success: Bool) {
        let now = monotonicTime()
        state.withLock { if success { $0.circuit.succeeded() } else { $0.circuit.failed(at: now) } }
    }

    /// The loop has ended; no more commands are run.
    func ended(by kind: CacheFaultKind? = nil) {
        let (left, closings) = state.withLock { state -> (Taken, [@Sendable () -> Void]) in
            (state.hasEnded, state.taken.isClosed) = (true, true)
            defer { (state.taken.looks, state.taken.changes, state.taken.arrivals) = ([], [], []) }
            defer { (state.closings, state.changeBytes) = ([], 0) }
            return (state.taken, state.closings)
        }
        for item in left.looks + left.changes { item.command.finish(kind.map { .failed($0) } ?? .refused) }
        for done in closings { done() }
    }
}

/// The removals by other processes, as far as they were announced.
final class RemovalsOfOthers: Sendable {
    private struct State {
        /// The names of the keys since `hear` was called last.
        var names: [String] = []
        /// Whether any entry may have been removed since then.
        var isAny = false
    }

    /// Identifies the messages of this storage.
    let sender = String(UInt64.random(in: 0...(.max)), radix: 16) + String(UInt64.random(in: 0...(.max)), radix: 16)
    /// Removals, and times when some may have been missed.
    private let count = Atomic<UInt64>(0)
    private let seen = Atomic<UInt64>(0)
    private let messageCount = Atomic<UInt64>(0)
    private let state = Mutex(State())
    /// Held while entries are forgotten: those who hear at the same moment wait for that.
    private let hearing = Mutex(())

    /// The maximum number of names that are kept.
    private static let most = 4096

    /// Adds a message about the key of this name, or about any entry, or that some may have been missed before a
    /// subscription. The first subscription does not count as a message, so that the response to the first request of a
    /// process is stored, although a removal may have been missed in the milliseconds before.
    func add(_ name: String?, isMessage: Bool) {
        let isFirst = count.load(ordering: .relaxed) == 0
        state.withLock { state in
            if let name, state.names.count < Self.most { return state.names.append(name) }
            (state.isAny, state.names) = (true, [])
            if isMessage || !isFirst { messageCount.wrappingAdd(1, ordering: .relaxed) }
        }
        count.wrappingAdd(1, ordering: .releasing)
    }

    var messages: UInt64 { messageCount.load(ordering: .relaxed) }

    /// Calls `forget` with the names of the keys whose entries were removed since the last call, and with `nil` if any
    /// entry may have been removed.
    func hear(_ forget: (_ name: String?) -> Void) {
        let now = count.load(ordering: .acquiring)
        if now == seen.load(ordering: .relaxed) { return }
        hearing.withLock { _ in
            let heard = state.withLock { state in
                defer { state = State() }
                return state
            }
            if heard.isAny { forget(nil) }
            for name in heard.names { forget(name) }
            seen.store(now, ordering: .relaxed)
        }
    }
}

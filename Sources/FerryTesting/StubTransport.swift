import Dispatch
public import Ferry
import FerryTransport
import Synchronization

/// Takes the network's place in tests: a script answers each request, and everything that reached it is written down.
///
///     let stub = StubTransport { request in
///         request.url.hasSuffix("/users/7") ? .response(body: #"{"nick": "kim"}"#) : .response(status: 404)
///     }
///     let agent = NetworkAgent(stub: stub)
///
/// Answers come on a thread of the stub's own, as they come on a loop's thread from a network: all that is ready
/// together is handed over together, as one turn.
public final class StubTransport: Sendable {
    struct Entry {
        var request: Request
        var reportsStart: Bool
        var pull: Pull?
        var isHeld = false
    }

    struct Waiter {
        var number: UInt64
        var isOver: @Sendable (borrowing State) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    struct State {
        weak var receiver: (any TransferReceiver)?
        /// Unanswered, by their id.
        var open: [TransferID: Entry] = [:]
        /// Submitted, and not yet looked at.
        var arrived: [TransferID] = []
        /// Whose body may go on being pulled.
        var resumed: [TransferID] = []
        /// For the next turn.
        var ready: [TransferResult] = []
        var requests: [Request] = []
        var events: [Event] = []
        var handOvers: [Int] = []
        var isTurnComing = false
        var isSuspended = false
        var isShutDown = false
        var finished: UInt64 = 0
        var waiters: [Waiter] = []
        /// Of the latest.
        var waiterNumber: UInt64 = 0
    }

    let state = Mutex(State())
    private let queue = DispatchQueue(label: "ferry.stub")
    private let script: @Sendable (Request) -> Answer

    /// Answers each request by a closure, which runs on the stub's thread, one call at a time.
    public init(_ script: @escaping @Sendable (Request) -> Answer) { self.script = script }

    /// Gives every request the same answer.
    public convenience init(always answer: Answer) { self.init { _ in answer } }

    /// Gives the first request the first answer, the second the second, and so on; the last is for all that follow.
    ///
    ///     let stub = StubTransport(answers: [.response(status: 503), .redirect(to: "/there"), .response(body: "here")])
    public convenience init(answers: [Answer]) {
        precondition(!answers.isEmpty, "a stub needs an answer")
        self.init { request in answers[min(request.number, answers.count) - 1] }
    }

    /// The requests so far, in the order in which they came.
    public var requests: [Request] { state.withLock { $0.requests } }

    /// What happened so far, in its order.
    public var events: [Event] { state.withLock { $0.events } }

    /// How many results each turn handed over.
    public var handOvers: [Int] { state.withLock { $0.handOvers } }

    /// The requests whose answer is held back.
    public var held: [Request] {
        state.withLock { $0.open.values.filter(\.isHeld).map(\.request).sorted { $0.number < $1.number } }
    }

    /// Waits until this many requests came, all in all. It ends early, without an error, when its task is cancelled, as
    /// a test's time limit does.
    public func waitForRequests(_ count: Int) async { await wait { $0.requests.count >= count } }

    /// Waits until this many answers are held back at once, or its task is cancelled.
    public func waitForHeld(_ count: Int) async {
        await wait { $0.open.count >= count && $0.open.values.count(where: \.isHeld) >= count }
    }

    private func wait(until isOver: @escaping @Sendable (borrowing State) -> Bool) async {
        let number = state.withLock { state in
            state.waiterNumber += 1
            return state.waiterNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    // Cancelled before: then the handler has found nobody.
                    if Task.isCancelled { return [continuation] }
                    state.waiters.append(Waiter(number: number, isOver: isOver, continuation: continuation))
                    return state.takeWoken()
                }.forEach { $0.resume() }
            }
        } onCancel: {
            let cancelled = state.withLock { state in
                let index = state.waiters.firstIndex { $0.number == number }
                return index.map { state.waiters.remove(at: $0).continuation }
            }
            cancelled?.resume()
        }
    }

    /// Lets nothing out of the queue until ``resume()``: runs stay `waiting`, and only cancels are answered.
    public func suspend() { state.withLock { $0.isSuspended = true } }

    /// Goes on after ``suspend()``.
    public func resume() {
        state.withLock { $0.isSuspended = false }
        scheduleTurn()
    }

    /// Answers a request that was held back; nothing if it has been answered or cancelled.
    public func answer(_ request: Request, with answer: Answer) {
        state.withLock { state in
            guard let id = state.open.first(where: { $0.value.request.number == request.number })?.key else { return }
            state.finish(id, with: answer)
        }
        scheduleTurn()
    }

    /// Gives all held requests this answer, in one turn.
    public func releaseAll(with answer: Answer = .response()) {
        state.withLock { state in
            let held = state.open.filter(\.value.isHeld).sorted { $0.value.request.number < $1.value.request.number }
            for (id, _) in held { state.finish(id, with: answer) }
        }
        scheduleTurn()
    }

    /// Has a turn run soon, unless one is coming.
    func scheduleTurn() {
        let isNeeded = state.withLock { state in
            if state.isTurnComing { return false }
            state.isTurnComing = true
            return true
        }
        if isNeeded { queue.async { self.turn() } }
    }

    /// [queue] Looks at what came, then hands over all that is ready.
    private func turn() {
        let (receiver, arrived, resumed) = state.withLock { state in
            state.isTurnComing = false
            if state.isSuspended { return (state.receiver, [(TransferID, Entry)](), [TransferID]()) }
            let arrived = state.arrived.compactMap { id in state.open[id].map { (id, $0) } }
            defer { (state.arrived, state.resumed) = ([], []) }
            return (state.receiver, arrived, state.resumed)
        }
        for (id, entry) in arrived {
            if entry.reportsStart { receiver?.transferStarted(id) }
            if entry.pull == nil { answer(id, entry.request) } else { pull(id, receiver) }
        }
        for id in resumed { pull(id, receiver) }
        let ready = state.withLock { state in
            let ready = state.ready
            state.ready = []
            if !ready.isEmpty { state.handOvers.append(ready.count) }
            return ready
        }
        if !ready.isEmpty { receiver?.transfersFinished(ready) }
    }

    /// [queue] Asks the script.
    func answer(_ id: TransferID, _ request: Request) {
        let answer = script(request)
        let woken = state.withLock { state in
            state.finish(id, with: answer)
            return state.takeWoken()
        }
        for waiter in woken { waiter.resume() }
    }
}

extension StubTransport.State {
    /// Those who wait for what has come about.
    mutating func takeWoken() -> [CheckedContinuation<Void, Never>] {
        if waiters.isEmpty { return [] }
        var woken: [CheckedContinuation<Void, Never>] = []
        var rest: [StubTransport.Waiter] = []
        for waiter in waiters {
            if waiter.isOver(self) { woken.append(waiter.continuation) } else { rest.append(waiter) }
        }
        waiters = rest
        return woken
    }

    /// Puts the one result of a transfer aside for the turn, unless it has one.
    mutating func finish(_ id: TransferID, with answer: StubTransport.Answer) {
        guard open[id] != nil else { return }
        guard let result = answer.result(id) else {
            open[id]?.isHeld = true
            return
        }
        open[id] = nil
        finished += 1
        ready.append(result)
    }
}

extension NetworkAgent {
    /// An agent without a network.
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration(), stub: StubTransport) {
        self.init(configuration: configuration, transport: stub)
    }
}

extension StubTransport {
    /// A body that is given out piece by piece.
    struct Pull {
        var length: UInt64?
        var bytes: [UInt8] = []

        init?(_ request: borrowing TransferRequest) {
            guard case .pull(let length) = request.body else { return nil }
            self.length = length
        }

        /// No byte beyond the announced length is asked for.
        fileprivate var wanted: Int {
            min(64 * 1024, length.map { Int(clamping: $0) - bytes.count } ?? .max)
        }
    }

    /// [queue] Pulls as much as there is; the script is asked when the body is complete.
    func pull(_ id: TransferID, _ receiver: (any TransferReceiver)?) {
        guard let receiver, var pull = state.withLock({ $0.open[id]?.pull }) else { return }
        var fill = TransferFill.end
        while pull.wanted > 0 {
            let piece = [UInt8](unsafeUninitializedCapacity: pull.wanted) { space, count in
                fill = receiver.transfer(id, fill: UnsafeMutableRawBufferPointer(space))
                if case .bytes(let got) = fill { count = got }
            }
            guard case .bytes = fill else { break }
            pull.bytes += piece
            fill = .end
        }
        switch fill {
        case .bytes, .later: state.withLock { $0.open[id]?.pull = pull }
        case .end where pull.length == nil || pull.wanted == 0: complete(id, pull.bytes)
        case .end, .failed, .piece: state.withLock { $0.finish(id, with: .failure(.uploadSource)) }
        }
    }

    private func complete(_ id: TransferID, _ body: [UInt8]) {
        let request = state.withLock { state -> Request? in
            state.open[id]?.pull = nil
            state.open[id]?.request.body = body
            guard let request = state.open[id]?.request else { return nil }
            state.requests[request.number - 1].body = body
            return request
        }
        if let request { answer(id, request) }
    }
}

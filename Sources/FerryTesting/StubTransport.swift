import Dispatch
public import Ferry
import FerryTransport
import Synchronization

<<<<<<< HEAD
/// Replaces the network in tests: a script responds to each request, and every request is recorded.
=======
/// A stand-in for the network in tests: a script answers each request, and everything that reached the stub is
/// recorded.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
///
///     let stub = StubTransport { request in
///         request.url.hasSuffix("/users/7") ? .response(body: #"{"nick": "kim"}"#) : .response(status: 404)
///     }
///     let agent = NetworkAgent(stub: stub)
///
<<<<<<< HEAD
/// Responses arrive on a thread of the stub, like those of a network on an event loop's thread: all that are ready
/// together are delivered together, as one turn.
=======
/// Results are delivered on a thread of the stub, as the network's are on the thread of an event loop. Results that are
/// ready at the same time are delivered together, as one turn.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
        /// Requests without a response, by id.
        var open: [TransferID: Entry] = [:]
        /// Submitted requests that were not looked at yet.
        var arrived: [TransferID] = []
        /// Requests whose body can be read further.
=======
        /// Requests without a result, by id.
        var open: [TransferID: Entry] = [:]
        /// Submitted, but not handled yet.
        var arrived: [TransferID] = []
        /// Requests whose body may be pulled again.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        var resumed: [TransferID] = []
        /// Results for the next turn.
        var ready: [TransferResult] = []
        var requests: [Request] = []
        var events: [Event] = []
        var handOvers: [Int] = []
        var isTurnComing = false
        var isSuspended = false
        var isShutDown = false
        var finished: UInt64 = 0
        var waiters: [Waiter] = []
        /// The number of the latest waiter.
        var waiterNumber: UInt64 = 0
    }

    let state = Mutex(State())
    private let queue = DispatchQueue(label: "ferry.stub")
    private let script: @Sendable (Request) -> Answer

<<<<<<< HEAD
    /// Creates a stub that responds with a closure. The closure runs on the stub's thread, one call at a time.
    public init(_ script: @escaping @Sendable (Request) -> Answer) { self.script = script }

    /// Creates a stub with the same response for every request.
    public convenience init(always answer: Answer) { self.init { _ in answer } }

    /// Creates a stub with one response after another; the last one is for all further requests.
=======
    /// Makes a stub with a closure that answers each request. It runs on the stub's thread, one call at a time.
    public init(_ script: @escaping @Sendable (Request) -> Answer) { self.script = script }

    /// Makes a stub that gives every request the same answer.
    public convenience init(always answer: Answer) { self.init { _ in answer } }

    /// Makes a stub that gives the first request the first answer, the second the second, and so on. The last answer is
    /// for all later requests.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    ///
    ///     let stub = StubTransport(answers: [.response(status: 503), .redirect(to: "/there"), .response(body: "here")])
    public convenience init(answers: [Answer]) {
        precondition(!answers.isEmpty, "a stub needs an answer")
        self.init { request in answers[min(request.number, answers.count) - 1] }
    }

<<<<<<< HEAD
    /// The requests so far, in order.
=======
    /// The requests so far, in order of arrival.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    public var requests: [Request] { state.withLock { $0.requests } }

    /// The events so far, in order.
    public var events: [Event] { state.withLock { $0.events } }

    /// The number of results that each turn delivered.
    public var handOvers: [Int] { state.withLock { $0.handOvers } }

<<<<<<< HEAD
    /// The requests whose response is held.
=======
    /// The requests that are held.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    public var held: [Request] {
        state.withLock { $0.open.values.filter(\.isHeld).map(\.request).sorted { $0.number < $1.number } }
    }

    /// Waits until this many requests have arrived in total. It returns early, without an error, if its task is
    /// cancelled, for example by a test's time limit.
    public func waitForRequests(_ count: Int) async { await wait { $0.requests.count >= count } }

<<<<<<< HEAD
    /// Waits until this many responses are held at once, or its task is cancelled.
=======
    /// Waits until this many requests are held at once, or its task is cancelled.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
                    // The task was cancelled before, when the handler found no waiter.
=======
                    // Cancelled earlier: the handler has found no continuation then.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

    /// Keeps all requests in the queue until ``resume()``: runs stay `waiting`, and only cancels take effect.
    public func suspend() { state.withLock { $0.isSuspended = true } }

    /// Continues after ``suspend()``.
    public func resume() {
        state.withLock { $0.isSuspended = false }
        scheduleTurn()
    }

<<<<<<< HEAD
    /// Responds to a held request. Has no effect if it has a response or was cancelled.
=======
    /// Answers a request that was held; no effect if it has been answered or cancelled.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    public func answer(_ request: Request, with answer: Answer) {
        state.withLock { state in
            guard let id = state.open.first(where: { $0.value.request.number == request.number })?.key else { return }
            state.finish(id, with: answer)
        }
        scheduleTurn()
    }

    /// Gives all held requests this response, in one turn.
    public func releaseAll(with answer: Answer = .response()) {
        state.withLock { state in
            let held = state.open.filter(\.value.isHeld).sorted { $0.value.request.number < $1.value.request.number }
            for (id, _) in held { state.finish(id, with: answer) }
        }
        scheduleTurn()
    }

<<<<<<< HEAD
    /// Schedules a turn, unless one is already scheduled.
=======
    /// Schedules a turn, unless one is scheduled.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    func scheduleTurn() {
        let isNeeded = state.withLock { state in
            if state.isTurnComing { return false }
            state.isTurnComing = true
            return true
        }
        if isNeeded { queue.async { self.turn() } }
    }

<<<<<<< HEAD
    /// [queue] Looks at new requests, then delivers all results that are ready.
=======
    /// [queue] Handles new requests, then delivers all results that are ready.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

    /// [queue] Calls the script.
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
<<<<<<< HEAD
    /// The waiters whose condition is met.
=======
    /// Removes and returns the waiters whose condition is met.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

<<<<<<< HEAD
    /// Stores the one result of a transfer for the turn, unless it has one.
=======
    /// Adds the one result of a transfer to the turn, unless it has one.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
    /// Creates an agent without a network.
=======
    /// Makes an agent without a network.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration(), stub: StubTransport) {
        self.init(configuration: configuration, transport: stub)
    }
}

extension StubTransport {
<<<<<<< HEAD
    /// A body that is read piece by piece.
=======
    /// A body that is pulled piece by piece.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    struct Pull {
        var length: UInt64?
        var bytes: [UInt8] = []

        init?(_ request: borrowing TransferRequest) {
            guard case .pull(let length) = request.body else { return nil }
            self.length = length
        }

<<<<<<< HEAD
        /// No byte beyond the announced length is requested.
=======
        /// The number of bytes to ask for, never beyond the announced length.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        fileprivate var wanted: Int {
            min(64 * 1024, length.map { Int(clamping: $0) - bytes.count } ?? .max)
        }
    }

<<<<<<< HEAD
    /// [queue] Reads what is available; the script is called when the body is complete.
=======
    /// [queue] Pulls the bytes that are available; the script is called when the body is complete.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

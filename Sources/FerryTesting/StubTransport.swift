import Dispatch
public import Ferry
import FerrySynchronization
import FerryTransport

/// A stand-in for the network in tests: a script responds to each request, and everything that reached the stub is
/// recorded.
///
///     let stub = StubTransport { request in
///         request.url.hasSuffix("/users/7") ? .response(body: #"{"nick": "kim"}"#) : .response(status: 404)
///     }
///     let agent = NetworkAgent(stub: stub)
///
/// Results are delivered on a thread of the stub, as the network's are on the thread of an event loop. Results that are
/// ready at the same time are delivered together, as one turn.
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
        /// Requests without a result, by id.
        var open: [TransferID: Entry] = [:]
        /// Submitted, but not handled yet.
        var arrived: [TransferID] = []
        /// Requests whose body may be pulled again.
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
    private let script: @Sendable (Request) -> Response

    /// Creates a stub with a closure that returns the response to each request. The closure runs on the stub's thread,
    /// one call at a time.
    public init(_ script: @escaping @Sendable (Request) -> Response) { self.script = script }

    /// Creates a stub that gives every request the same response.
    public convenience init(always response: Response) { self.init { _ in response } }

    /// Creates a stub that gives the first request the first response, the second the second, and so on. The last
    /// response is for all later requests.
    ///
    ///     let stub = StubTransport(
    ///         responses: [.response(status: 503), .redirect(to: "/there"), .response(body: "here")])
    public convenience init(responses: [Response]) {
        precondition(!responses.isEmpty, "a stub needs a response")
        self.init { request in responses[min(request.number, responses.count) - 1] }
    }

    /// The requests so far, in order of arrival.
    public var requests: [Request] { state.withLock { $0.requests } }

    /// The events so far, in order.
    public var events: [Event] { state.withLock { $0.events } }

    /// The number of results that each turn delivered.
    public var handOvers: [Int] { state.withLock { $0.handOvers } }

    /// The requests that are held.
    public var held: [Request] {
        state.withLock { $0.open.values.filter(\.isHeld).map(\.request).sorted { $0.number < $1.number } }
    }

    /// Waits until this many requests have arrived in total. It returns early, without an error, if its task is
    /// cancelled, for example by a test's time limit.
    public func waitForRequests(_ count: Int) async { await wait { $0.requests.count >= count } }

    /// Waits until this many requests are held at once, or its task is cancelled.
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
                    // Cancelled earlier: the handler has found no continuation then.
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

    /// Responds to a request that was held; no effect if it has its response or was cancelled.
    public func respond(to request: Request, with response: Response) {
        state.withLock { state in
            guard let id = state.open.first(where: { $0.value.request.number == request.number })?.key else { return }
            state.finish(id, with: response)
        }
        scheduleTurn()
    }

    /// Gives all held requests this response, in one turn.
    public func releaseAll(with response: Response = .response()) {
        state.withLock { state in
            let held = state.open.filter(\.value.isHeld).sorted { $0.value.request.number < $1.value.request.number }
            for (id, _) in held { state.finish(id, with: response) }
        }
        scheduleTurn()
    }

    /// Schedules a turn, unless one is scheduled.
    func scheduleTurn() {
        let isNeeded = state.withLock { state in
            if state.isTurnComing { return false }
            state.isTurnComing = true
            return true
        }
        if isNeeded { queue.async { self.turn() } }
    }

    /// [queue] Handles new requests, then delivers all results that are ready.
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
            if entry.pull == nil { respond(id, entry.request) } else { pull(id, receiver) }
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
    func respond(_ id: TransferID, _ request: Request) {
        let response = script(request)
        let woken = state.withLock { state in
            state.finish(id, with: response)
            return state.takeWoken()
        }
        for waiter in woken { waiter.resume() }
    }
}

extension StubTransport.State {
    /// Removes and returns the waiters whose condition is met.
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

    /// Adds the one result of a transfer to the turn, unless it has one.
    mutating func finish(_ id: TransferID, with response: StubTransport.Response) {
        guard open[id] != nil else { return }
        guard let result = response.result(id) else {
            open[id]?.isHeld = true
            return
        }
        open[id] = nil
        finished += 1
        ready.append(result)
    }
}

extension NetworkAgent {
    /// Creates an agent without a network.
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration(), stub: StubTransport) {
        self.init(configuration: configuration, transport: stub)
    }
}

extension StubTransport {
    /// A body that is pulled piece by piece.
    struct Pull {
        var length: UInt64?
        var bytes: [UInt8] = []

        init?(_ request: borrowing TransferRequest) {
            guard case .pull(let length) = request.body else { return nil }
            self.length = length
        }

        /// The number of bytes to ask for, never beyond the announced length.
        fileprivate var wanted: Int {
            min(64 * 1024, length.map { Int(clamping: $0) - bytes.count } ?? .max)
        }
    }

    /// [queue] Pulls the bytes that are available; the script is called when the body is complete.
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
        if let request { respond(id, request) }
    }
}

import Dispatch
import FerrySynchronization
import FerryTransport

/// A run whose result goes to a closure or a delegate. The parts that depend on the type of the request are in the
/// subclass.
///
/// Sendable like every ``Run``: mutable state is behind its lock, except `pending` and `figures`, which are handed from
/// the event loop to the queues and accessed by one of them at a time.
class CallbackRun: Run, @unchecked Sendable {
    private struct Life {
        var machine = RunMachine()
        /// Held until the result is delivered, so that the run can be controlled as long as it lives, and no longer.
        var core: AgentCore?
        /// When it left the queue, and its final metrics.
        var left: ContinuousClock.Instant?
        var measured: FinalMetrics?
        var isFromCache = false
        /// Set while the run takes more than one plain transfer.
        var control: RunControl?
        /// The priority, if it was changed before that; for all transfers that follow.
        var priority: RequestPriority?
    }

    private let life: Mutex<Life>
    /// The start of the deadline.
    let start = ContinuousClock.now
    /// Set by the thread that got the run from the table, when the transport has a result. The queues access it in
    /// order.
    private var pending: Answer?
    /// The metrics of the whole run. Written on the processing queue.
    final var figures: FinalMetrics?
    let number: UInt64
    let queue: DispatchQueue
    /// Whether it belongs to a token refresh, as determined by the task that starts it.
    private let isRefresh: Bool

    init(
        url: String, tag: String?, watch: RunWatch?, number: UInt64, queue: DispatchQueue, core: AgentCore,
        control: RunControl? = nil
    ) {
        life = Mutex(Life(core: core, control: control))
        self.number = number
        self.queue = queue
        isRefresh = core.isRefreshing
        super.init(url: url, tag: tag, watch: watch, goesByQueues: true)
    }

    final var state: RunState { life.withLock { $0.machine.state } }

    final var isFromCache: Bool { life.withLock { $0.isFromCache } }

    final var metrics: RequestMetrics {
        let (left, measured) = life.withLock { ($0.left, $0.measured) }
        if let measured { return measured.value }
        var metrics = RequestMetrics()
        metrics.total = start.duration(to: .now)
        metrics.queue = left.map { start.duration(to: $0) } ?? metrics.total
        return metrics
    }

    override final func started() {
        life.withLock { life in
            life.machine.started()
            if life.left == nil { life.left = .now }
        }
    }

    override final func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        // A run that has not been sent yet keeps waiting.
        if case .unsent = answer {} else { life.withLock { $0.machine.answered() } }
        pending = answer
        turn.append(self)
    }

    override final func cancelled() -> TransferID? {
        let (action, control) = life.withLock { ($0.machine.cancel(), $0.control) }
        if let control {
            control.end(.cancelled)
            return nil
        }
        switch action {
        case .stopTransfer: return noteCancel()
        case .replaceResult, .none: return nil
        }
    }

    final func cancel() {
        guard let core = life.withLock({ $0.core }) else { return }
        core.cancel(self)
    }

    final func setPriority(_ priority: RequestPriority) {
        let (core, control) = life.withLock { life in
            life.priority = priority
            return (life.core, life.control)
        }
        guard let core else { return }
        if let control {
            control.setPriority(priority, in: core)
        } else if id != 0 {
            core.transport.setRing(priority.ring, of: id)
        }
    }

    /// [processing queue] Validates and creates the value. Returns `false` if the run continues and is not ready yet.
    final func process(_ core: AgentCore) -> Bool {
        guard let answer = pending.take() else { preconditionFailure("a run was processed before it was answered") }
        if state == .cancelled {
            if let control = life.withLock({ $0.control.take() }) { core.leave(control) }
            // A run that was cancelled after processing keeps its metrics.
            if figures == nil { figures = FinalMetrics(answer, ProcessingTimes(isMeasured: false)) }
            fail(Self.cancellation(answer, url: url), answer)
            return true
        }
        guard let call = call(after: answer, core) else {
            finish(answer, core)
            return true
        }
        let (control, priority, isWanted) = life.withLock { life in
            let control = life.control ?? RunControl(tag: tag, isRefresh: isRefresh)
            life.control = control
            return (control, life.priority, life.machine.wentOn())
        }
        if let priority { control.setPriority(priority, in: core) }
        if !isWanted { control.end(.cancelled) }
        // It has left the processing queue: a shutdown waits for it again.
        core.enter(control)
        Task {
            self.pending = await self.carry(call, control, after: answer, by: core)
            self.life.withLock { life in
                life.control = nil
                life.machine.answered()
            }
            core.process([self])
        }
        return false
    }

    private static func cancellation(_ answer: Answer, url: String) -> RequestError {
        switch answer {
        case .refused(let error): error.cancelled
        case .result(let result): .cancelled(result, url: url)
        case .arrived(let result, let origin): .cancelled(result, url: url, origin: origin)
        case .unsent: .cancelled(nil, url: url)
        }
    }

    /// [callback queue] Delivers the result. Returns `false` if the run was cancelled on the way: then it has to be
    /// processed again, because failure hooks run on the processing queue.
    final func deliver() -> Bool {
        dispatchPrecondition(condition: .onQueue(queue))
        let end = end
        let (action, core) = life.withLock { life in
            let action = life.machine.deliver(end)
            if action == .result { (life.measured, life.isFromCache) = (figures, cameFromCache) }
            return (action, action == .cancelled ? nil : life.core.take())
        }
        switch action {
        case .result:
            callBack()
            forget()
        case .cancelled: pending = .refused(cancellation)
        case .none: break
        }
        withExtendedLifetime(core) {}
        return action != .cancelled
    }

    /// Implemented by the subclass: takes the result, decides how the run ends, and calls back once.
    func call(after answer: Answer, _ core: AgentCore) -> Call? { nil }
    func carry(_ call: Call, _ control: RunControl, after answer: Answer, by core: AgentCore) async -> Answer {
        await Exchange.run(call, control, after: answer, by: core)
    }
    func finish(_ answer: Answer, _ core: AgentCore) {}
    func fail(_ error: RequestError, _ answer: Answer) {}
    var end: RunState { .failed }
    var cameFromCache: Bool { false }
    /// The error of a run that was cancelled while its result was on its way.
    var cancellation: RequestError { .cancelled(nil, url: url) }
    func callBack() {}
}

/// The metrics of a run that has ended. They are on the heap, because they are large and a waiting run has none.
final class FinalMetrics: Sendable {
    let value: RequestMetrics

    init(_ value: RequestMetrics) { self.value = value }

    convenience init(_ answer: Answer, _ times: ProcessingTimes) { self.init(RequestMetrics(answer, times)) }
}

import Dispatch
import FerryTransport
import Synchronization

/// A run whose result goes to a closure or a delegate. What is not the same for every type of request is in the
/// subclass.
class CallbackRun: Run, @unchecked Sendable {
    private struct Life {
        var machine = RunMachine()
        /// Until the result is delivered, so that the run can be steered as long as it lives, and no longer.
        var core: AgentCore?
    }

    private let life: Mutex<Life>
    /// Set when the transport has answered, by the thread that got the run from the table; the queues go on in order.
    private var pending: Answer?
    let number: UInt64
    let queue: DispatchQueue

    init(
        url: String, tag: String?, number: UInt64, queue: DispatchQueue, core: AgentCore
    ) {
        life = Mutex(Life(core: core))
        self.number = number
        self.queue = queue
        super.init(url: url, tag: tag, goesByQueues: true)
    }

    final var state: RunState { life.withLock { $0.machine.state } }

    override final func started() { life.withLock { $0.machine.started() } }

    override final func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        life.withLock { $0.machine.answered() }
        pending = answer
        turn.append(self)
    }

    override final func cancelled() -> TransferID? {
        switch life.withLock({ $0.machine.cancel() }) {
        case .stopTransfer: noteCancel()
        case .replaceResult, .none: nil
        }
    }

    final func cancel() {
        guard let core = life.withLock({ $0.core }) else { return }
        if let id = cancelled() { core.transport.cancel(id) }
    }

    final func setPriority(_ priority: RequestPriority) {
        guard let core = life.withLock({ $0.core }), id != 0 else { return }
        core.transport.setRing(priority.ring, of: id)
    }

    /// [processing queue] Validates and makes the value.
    final func process(_ builder: RequestBuilder) {
        guard let answer = pending.take() else { preconditionFailure("a run was processed before it was answered") }
        let isWanted = state != .cancelled
        switch answer {
        case .refused(let error): fail(error)
        case .result(let result):
            if isWanted { finish(result, builder) } else { fail(.cancelled(result, url: url)) }
        }
    }

    /// [callback queue] Hands the result over.
    final func deliver() {
        dispatchPrecondition(condition: .onQueue(queue))
        let end = end
        let (action, core) = life.withLock { life in (life.machine.deliver(end), life.core.take()) }
        switch action {
        case .result: callBack()
        case .cancelled:
            fail(.cancelled(nil, url: url))
            callBack()
        case .none: break
        }
        withExtendedLifetime(core) {}
    }

    /// The subclass's part: take the answer, say how it ends, call back once.
    func finish(_ result: TransferResult, _ builder: RequestBuilder) {}
    func fail(_ error: RequestError) {}
    var end: RunState { .failed }
    func callBack() {}
}

import Dispatch
import Synchronization

/// A group whose result goes to a closure or a delegate.
final class StartedGroup<G: RequestGroup>: RunHandle {
    enum Receiver: Sendable {
        case closure(@Sendable (Result<G.Value, RequestError>) -> Void)
        case delegate(WeakDelegate)
    }

    struct WeakDelegate: Sendable {
        weak let object: (any RequestDelegate)?
    }

    private let run: GroupRun
    private let queue: DispatchQueue
    /// All three until the result is delivered: what their closures hold may hold the run.
    private let group: Mutex<G?>
    private let receiver: Mutex<Receiver?>
    private let core: Mutex<AgentCore?>

    init(_ group: G, _ run: GroupRun, on queue: DispatchQueue, core: AgentCore, receiver: Receiver) {
        self.group = Mutex(group)
        self.run = run
        self.queue = queue
        self.receiver = Mutex(receiver)
        self.core = Mutex(core)
    }

    var number: UInt64 { run.number }
    var state: RunState { run.state }
    var tag: String? { run.tag }
    var metrics: RequestMetrics { run.metrics }
    var progress: GroupProgress? { run.progress }
    var isFromCache: Bool { run.isFromCache }
    var meter: UploadMeter? { nil }
    func cancel() { run.cancel() }
    func setPriority(_ priority: RequestPriority) {
        guard let core = core.withLock({ $0 }) else { return }
        core.setPriority(priority, of: run)
    }

    /// Hands the result over on the queue, then lets go of the record.
    func deliver(_ result: Result<Made, RequestError>, _ core: AgentCore) {
        queue.async {
            dispatchPrecondition(condition: .onQueue(self.queue))
            self.callBack(result)
            self.core.withLock { $0 = nil }
            core.leave(self.run)
        }
    }

    private func callBack(_ made: Result<Made, RequestError>) {
        var result = made.map { $0.value.open(as: G.Value.self) }
        if run.deliver(RunState(result)) == .cancelled {
            let error =
                if case .failure(let error) = result { error.cancelled } else { RequestError(GroupRun.End.cancelled) }
            result = .failure(error)
            _ = run.deliver(.cancelled)
        }
        let outcome =
            switch result {
            case .success: RunOutcome.finished(status: nil, isFromCache: run.isFromCache)
            case .failure(let error): RunOutcome(error)
            }
        run.watch?.willStop(outcome, run.metrics)
        let group = group.withLock { $0.take() }
        switch receiver.withLock({ $0.take() }) {
        case .closure(let closure): closure(result)
        case .delegate(let delegate):
            if let object = delegate.object, let group { tell(object, group, result) }
        case nil: break
        }
        run.watch?.didStop(outcome)
    }

    private func tell(_ delegate: any RequestDelegate, _ group: G, _ result: Result<G.Value, RequestError>) {
        let task = RequestTask<G.Value>(run: self)
        switch result {
        case .success(let value): delegate.groupFinished(task, group, value: value)
        case .failure(let error): delegate.groupFailed(task, group, error: error)
        }
    }
}

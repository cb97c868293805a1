import Dispatch
import FerryTransport
import Synchronization

/// What an agent is inside: the record table, the transport, and the queues.
///
/// It outlives its agent until every run is answered: while the table holds runs, it holds itself.
final class AgentCore: TransferReceiver {
    struct State {
        /// Runs by their transfer; those that go by queues until they are delivered.
        var table = RecordTable<Run>()
        /// Runs that take more than one plain transfer.
        var controls: [ObjectIdentifier: RunControl] = [:]
        /// Those of them that have no transfer in the table now.
        var resting = 0
        /// Batches and chains, those inside others too.
        var groups: [ObjectIdentifier: GroupRun] = [:]
        /// Answered, and on their way to their callbacks.
        var undelivered = 0
        /// Answered, and their tasks have yet to look whether they go on.
        var undecided = 0
        /// Refreshes of the token that are under way, also where no run waits for them.
        var refreshes = 0
        var cancels = CancelLog()
        var isClosed = false
        /// What still runs is being ended.
        var isOver = false
        var keep: AgentCore?
        var waiters: [ShutdownWaiter] = []
        /// Tasks that wait for the begin of the shutdown.
        var closeWaiters: [ShutdownWaiter] = []
    }

    let configuration: NetworkConfiguration
    let transport: any Transporting
    let builder: RequestBuilder
    /// Of all runs, without tracers: those are asked for spans, and told of nothing else.
    let observers: [any RequestObserver]
    /// The first of them that follows runs in a trace.
    let tracer: (any RunTracer)?
    /// Whether adapters or interceptors have a say in every run before it is sent.
    let alwaysNeedsExchange: Bool
    /// `nil` when nothing is to be logged.
    let log: RunLog?
    let retryAccounts: RetryAccounts
    let health = HostHealthTable()
    /// `nil` when nothing is to be kept.
    let cache: ResponseCache?
    let sharedTransfers = SharedTransferTable()
    /// `nil` without an authenticator. Set once, in `init`, as it names the core. Unsafe, and safe, because no other
    /// thread has the core before `init` hands it to the transport, which it does last; from then on it is only read.
    nonisolated(unsafe) private(set) var tokens: (any TokenSession)?
    /// Code of the application's runs here, and may block it: what must happen in time has a queue of its own.
    let processingQueue = DispatchQueue(label: "ferry.processing")
    let timerQueue = DispatchQueue(label: "ferry.timers")
    let callbackQueue: DispatchQueue
    let state = Mutex(State())
    let maxRuns: Int
    private let numbers = Atomic<UInt64>(0)

    init(_ configuration: NetworkConfiguration, _ transport: any Transporting) {
        self.configuration = configuration
        self.transport = transport
        builder = RequestBuilder(configuration)
        observers = configuration.observers.filter { !($0 is any RunTracer) }
        tracer = configuration.observers.lazy.compactMap { $0 as? any RunTracer }.first
        alwaysNeedsExchange = !configuration.adapters.isEmpty || !configuration.interceptors.isEmpty
        log = configuration.logSink.map { RunLog(sink: $0, sensitiveHeaders: configuration.declaredSecrets) }
        retryAccounts = RetryAccounts(configuration.retryBudget) { DispatchTime.now().uptimeNanoseconds }
        cache = configuration.cache.map { [builder] in ResponseCache($0, httpPrefix: builder.httpPrefix($0)) }
        callbackQueue = configuration.callbackQueue ?? DispatchQueue(label: "ferry.callbacks")
        let limits = configuration.limits
        maxRuns = limits.queueLength.map { Self.sum(max(limits.maxConcurrentTransfers, 1), max($0, 0)) } ?? .max
        tokens = configuration.authenticator.map { session(of: $0) }
        transport.attach(self)
    }

    /// Of two that are not negative; one that is too large is no bound.
    private static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, isTooLarge) = one.addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }

    private func session(of authenticator: some Authenticator) -> any TokenSession {
        AuthenticatorSession(authenticator, self)
    }

    /// Whether the task at hand refreshes this agent's token: runs in flight wait for what it sends.
    var isRefreshing: Bool { RefreshScope.core == ObjectIdentifier(self) }

    /// A shutdown waits for it within its grace: a refresh may have to store the token that it was given.
    func refreshBegan() { state.withLock { $0.refreshes += 1 } }

    func refreshEnded() {
        state.withLock { state in
            state.refreshes -= 1
            return state.becameIdle()
        }.act()
    }

    /// It takes no more runs.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Whether a jar may have something to send along.
    var hasCookies: Bool { configuration.keepsCookies && transport.hasCookies }

    /// The policy of a request, or the configuration's where it says so.
    func cachePolicy<R: Request>(of request: R) -> CachePolicy {
        let policy = request.cachePolicy
        if case .configured = policy.kind { return configuration.cachePolicy }
        return policy
    }

    /// Whether a refused token or a challenge may be answered.
    var asksBack: Bool { configuration.authenticator != nil || configuration.credentialProvider != nil }

    /// A request that may be retried pays into its host's account when it is sent for the first time.
    func payForRetries(_ url: String) {
        if let host = HostKey(url: url) { retryAccounts.deposit(host.authority) }
    }

    /// The next number of a run.
    var nextNumber: UInt64 { numbers.add(1, ordering: .relaxed).newValue }

    /// Hands a transfer of a run over. It gets its one answer in every case, perhaps before this returns. What a run
    /// goes on with was let in when the run began. One that `mayBeRetried` pays for that when it is let in.
    func start(
        _ run: Run, _ built: borrowing BuiltRequest, goesOn: Bool = false, mayBeRetried: Bool = false,
        on loop: UInt8? = nil
    ) {
        run.prepare(built)
        run.watch?.sends(built)
        let loop = loop ?? transport.chooseLoop()
        let admission = state.withLock { state -> Result<TransferID, RequestError> in
            if state.isClosed && !goesOn && !state.letsIn(run.group != nil || isRefreshing) {
                return .failure(RequestError(TransferFailure(.shutdown), url: run.url))
            }
            if state.table.count + state.resting >= maxRuns && !goesOn { return .failure(.queueFull(url: run.url)) }
            if goesOn { state.resting -= 1 }
            if state.table.count == 0 { state.keep = self }
            run.lastCancel = state.cancels.number
            return .success(state.table.insert(run, loop: loop))
        }
        let id: TransferID
        switch admission {
        case .success(let made): id = made
        case .failure(let error): return refuse(run, error)
        }
        if mayBeRetried { payForRetries(run.url) }
        run.source?.open { [weak transport] in transport?.resumeSending(id) }
        do throws(TransferFailure) {
            try transport.submit(built.transfer, id: id)
        } catch {
            // In this order: a callback that is on its way is waited for.
            refuse(run, RequestError(error, url: run.url))
            return take(id)
        }
        if !run.handedOver(as: id) { return transport.cancel(id) }
        guard let group = run.inherited else { return }
        // It may have been changed before the transfer had an id.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if let now = group.priority?.ring, now != built.transfer.ring { transport.setRing(now, of: id) }
    }

    /// Answers a run that never came to the transport.
    func refuse(_ run: Run, _ error: RequestError) { answer(run, .refused(error)) }

    /// Leaves a run to the exchange, which is to send it.
    func handOver(_ run: Run, to control: RunControl) {
        if let error = admit(control, url: run.url) { refuse(run, error) } else { answer(run, .unsent) }
    }

    /// Answers a run that the transport does not know.
    func answer(_ run: Run, _ answer: Answer) {
        run.source?.close()
        var turn: [CallbackRun] = []
        run.answer(answer, into: &turn)
        if turn.isEmpty { return }
        state.withLock { state in
            state.undelivered += turn.count
            for run in turn {
                // Whoever cancels all finds it there.
                let id = state.table.insertAnswered(run)
                if !run.handedOver(as: id) { state.table.remove(id) }
            }
        }
        process(turn)
    }

    /// Ends a run that a task waits for.
    func cancel(_ run: Run) {
        if let id = run.cancelled() { transport.cancel(id) }
    }

    /// Ends all runs, or those of a tag.
    func cancelAll(tagged tag: String? = nil) {
        let (runs, controls, groups) = state.withLock { state in
            state.cancels.note(tag)
            return (state.table.all, Array(state.controls.values), Array(state.groups.values))
        }
        func isMeant(_ other: String?) -> Bool { tag == nil || tag == other }
        for group in groups where isMeant(group.tag) { group.cancel() }
        for run in runs where isMeant(run.tag) { cancel(run) }
        for control in controls where isMeant(control.tag) { control.end(.cancelled) }
    }

    private func take(_ id: TransferID) {
        let (_, idle) = state.withLock { state in (state.table.remove(id), state.becameIdle()) }
        idle.act()
    }

    // MARK: From the transport, on a loop's thread

    func transfersFinished(_ results: [TransferResult]) {
        withUnsafeTemporaryAllocation(of: Run?.self, capacity: results.count) { runs in
            runs.initialize(repeating: nil)
            defer { runs.deinitialize() }
            let idle = state.withLock { state in
                for index in results.indices {
                    let result = results[index]
                    let id = result.id
                    guard let run = state.table.answer(id, keepsPlace: { $0.keepsPlace(as: id) }) else { continue }
                    if run.goesByQueues {
                        state.undelivered += 1
                    } else if !(result.succeeded && result.status < 300) && run.mayGoOn {
                        state.undecided += 1
                        run.isUndecided = true
                    }
                    runs[index] = run
                }
                return state.becameIdle()
            }
            var turn: [CallbackRun] = []
            for index in results.indices { runs[index].map { $0.answer($0.closeBody(results[index]), into: &turn) } }
            if !turn.isEmpty { process(turn) }
            idle.act()
        }
    }

    func transferStarted(_ id: TransferID) {
        state.withLock { $0.table[id] }?.started()
    }

    func transfer(_ id: TransferID, receivedHead head: TransferResult) {
        state.withLock { $0.table[id] }?.received(head: head)
    }

    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow {
        state.withLock { $0.table[id] }?.received(chunk: chunk) ?? .proceed
    }

    func transfer(_ id: TransferID, written count: UInt64) {
        state.withLock { $0.table[id] }?.written(count)
    }

    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill {
        state.withLock { $0.table[id] }?.fill(space) ?? .failed
    }

    func trustChanged(fault: String?) { log?.trustChanged(fault: fault) }

    // MARK: By queues

    /// One hop for all of a turn to the processing queue, one from there to each callback queue.
    func process(_ turn: [CallbackRun]) {
        processingQueue.async {
            dispatchPrecondition(condition: .onQueue(self.processingQueue))
            // Nearly always none goes on, and all go to one queue: then the turn is handed on as it is.
            var going: Set<ObjectIdentifier> = []
            for run in turn where !run.process(self) { going.insert(ObjectIdentifier(run)) }
            var rest = going.isEmpty ? turn : turn.filter { !going.contains(ObjectIdentifier($0)) }
            while let queue = rest.first?.queue {
                if rest.allSatisfy({ $0.queue === queue }) { return self.deliver(rest, on: queue) }
                self.deliver(rest.filter { $0.queue === queue }, on: queue)
                rest = rest.filter { $0.queue !== queue }
            }
        }
    }

    private func deliver(_ runs: [CallbackRun], on queue: DispatchQueue) {
        queue.async {
            let cancelled = runs.filter { !$0.deliver() }
            if !cancelled.isEmpty { self.process(cancelled) }
            self.state.withLock { state in
                state.undelivered -= runs.count - cancelled.count
                // Those come again, and keep their places: they stand in the same order.
                var again = cancelled[...]
                for run in runs {
                    if run === again.first { again.removeFirst() } else { state.table.remove(run.id) }
                }
                return state.becameIdle()
            }.act()
            // Not under the lock: with it ends what only its closure holds.
            withExtendedLifetime(runs) {}
        }
    }
}
extension AgentCore {
    /// Lets a run in that is to begin; the reason when it may not. From here on it can be ended by whoever ends all
    /// runs, and is waited for.
    func admit(_ control: RunControl, url: String) -> RequestError? {
        state.withLock { state in
            if state.isClosed && !state.letsIn(control.group != nil || control.isRefresh) {
                return RequestError(TransferFailure(.shutdown), url: url)
            }
            if state.table.count + state.resting >= maxRuns { return .queueFull(url: url) }
            state.enter(control, self)
            return nil
        }
    }

    /// A run is over, or was never begun.
    func leave(_ control: RunControl) {
        state.withLock { state in
            guard state.controls.removeValue(forKey: ObjectIdentifier(control)) != nil else { return IdleAction() }
            state.resting -= 1
            return state.becameIdle()
        }.act()
    }

    /// Makes sure that a run is known that goes on. One that comes from the plain transfer of `run` began when the
    /// cancels of all runs were at its number; since it was answered nobody could find it.
    func enter(_ control: RunControl, from run: Run? = nil) {
        let (isLate, isCancelled) = state.withLock { state in
            if state.controls[ObjectIdentifier(control)] == nil { state.enter(control, self) }
            if let run { state.decided(run) }
            return (state.isOver, run?.lastCancel.map { state.cancels.covers(control.tag, since: $0) } ?? false)
        }
        if isCancelled { control.end(.cancelled) }
        // It comes from a plain transfer that had been answered when all runs were ended.
        if isLate { control.end(.shutdown) }
    }

    /// The task of a run has looked at its answer: it was the last.
    func settled(_ run: AwaitedRun) {
        if !run.isUndecided { return }
        state.withLock { state in
            state.decided(run)
            return state.becameIdle()
        }.act()
    }

    /// Keeps a group until it ends; the reason when it may not run.
    func enter(_ group: GroupRun) -> RequestError? {
        let isRefused = state.withLock { state in
            state.groups[ObjectIdentifier(group)] = group
            return state.isClosed && !state.letsIn(group.outer != nil || isRefreshing)
        }
        return isRefused ? RequestError(.shutdown) : nil
    }

    /// A group is over, its callbacks included.
    func leave(_ group: GroupRun) {
        state.withLock { state in
            state.groups[ObjectIdentifier(group)] = nil
            return state.becameIdle()
        }.act()
    }

    /// Changes the place of all in a group that wait, unless they, or a group in it around them, have one of their own;
    /// and of what it begins later.
    func setPriority(_ priority: RequestPriority, of group: GroupRun) {
        group.setPriority(priority)
        let (runs, controls) = state.withLock { ($0.table.all, Array($0.controls.values)) }
        for run in runs where run.inherited?.hasPriority(of: group) == true && run.id != 0 {
            transport.setRing(priority.ring, of: run.id)
        }
        for control in controls where control.inherited?.hasPriority(of: group) == true {
            control.setPriority(priority, in: self)
        }
    }

    /// A transfer of a run that takes several counts for it.
    func goes() { state.withLock { $0.resting -= 1 } }

    /// A transfer of a run has left the table: the run counts by itself again.
    func rests() { state.withLock { $0.resting += 1 } }
}

extension AgentCore.State {
    fileprivate mutating func enter(_ control: RunControl, _ core: AgentCore) {
        controls[ObjectIdentifier(control)] = control
        resting += 1
        keep = core
    }

    /// The task of a run has looked at its answer.
    fileprivate mutating func decided(_ run: Run) {
        if run.isUndecided { undecided -= 1 }
        run.isUndecided = false
    }
}

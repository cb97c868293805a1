import Dispatch
import FerrySynchronization
import FerryTransport

/// The internals of an agent: the record table, the transport, and the queues.
///
/// It outlives its agent until every run has its result, because its receiver retains it while the table has runs.
final class AgentCore: Sendable {
    struct State {
        /// Runs by their transfer. Runs with callbacks stay until their result is delivered.
        var table = RecordTable<Run>()
        /// Runs that take more than one plain transfer.
        var controls: [ObjectIdentifier: RunControl] = [:]
        /// Those of them that wait for code of the application: a shutdown waits for them within the grace, but no
        /// longer.
        var waitingForApplication: Set<ObjectIdentifier> = []
        /// The number of these that have no transfer in the table at the moment.
        var resting = 0
        /// Batches and chains, including nested ones.
        var groups: [ObjectIdentifier: GroupRun] = [:]
        /// Runs with a result that is on its way to a callback.
        var undelivered = 0
        /// Runs with a response whose task has not yet decided whether to continue.
        var undecided = 0
        /// Active refreshes of the token, including those that no run waits for.
        var refreshes = 0
        var cancels = CancelLog()
        var isClosed = false
        /// The runs that are still active are being ended.
        var isOver = false
        private let receiver: CoreReceiver
        /// Whether the receiver holds the core.
        private(set) var isHeld = false
        var waiters: [ShutdownWaiter] = []
        /// Tasks that wait for the start of the shutdown.
        var closeWaiters: [ShutdownWaiter] = []

        init(_ receiver: CoreReceiver) { self.receiver = receiver }

        mutating func hold(_ core: AgentCore) {
            if !isHeld { receiver.hold(core) }
            isHeld = true
        }

        /// The core is released by whoever drops the result, outside the lock.
        mutating func letGo() -> AgentCore? {
            defer { isHeld = false }
            return isHeld ? receiver.letGo() : nil
        }
    }

    let configuration: NetworkConfiguration
    let transport: any Transporting
    let builder: RequestBuilder
    /// The observers of all runs, without tracers, which are only asked for spans.
    let observers: [any RequestObserver]
    /// The first observer that follows runs in a trace.
    let tracer: (any RunTracer)?
    /// Whether adapters or interceptors take part in every run before it is sent.
    let alwaysNeedsExchange: Bool
    /// `nil` if there is no log.
    let log: RunLog?
    /// Whether anybody observes a run, besides the observers of its request.
    func isWatched(_ own: [any RequestObserver]) -> Bool {
        !(own.isEmpty && observers.isEmpty) || tracer != nil || log != nil
    }
    let retryAccounts: RetryAccounts
    let health = HostHealthTable()
    /// `nil` if there is no cache.
    let cache: ResponseCache?
    let sharedTransfers = SharedTransferTable()
    /// `nil` without an authenticator. It is set once, in `init`, because it refers to the core. `nonisolated(unsafe)`
    /// is correct here: no other thread has the core before `init` hands it to the transport, which is its last step;
    /// afterwards the property is only read.
    nonisolated(unsafe) private(set) var tokens: (any TokenSession)?
    /// Runs code of the application, which may block it. Work that must be done in time has its own queue.
    let processingQueue = DispatchQueue(label: "ferry.processing")
    let timerQueue = DispatchQueue(label: "ferry.timers")
    let callbackQueue: DispatchQueue
    let state: Mutex<State>
    let maxRuns: Int
    private let numbers = Atomic<UInt64>(0)
    /// The same as in the state, for runs that need no lock.
    let closed = Atomic<Bool>(false)

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
        let receiver = CoreReceiver(log)
        state = Mutex(State(receiver))
        callbackQueue = configuration.callbackQueue ?? DispatchQueue(label: "ferry.callbacks")
        let limits = configuration.limits
        maxRuns = limits.queueLength.map { Self.sum(max(limits.maxConcurrentTransfers, 1), max($0, 0)) } ?? .max
        tokens = configuration.authenticator.map { session(of: $0) }
        transport.attach(receiver)
    }

    deinit { health.end() }

    /// The sum of two non-negative numbers; if it overflows, there is no limit.
    private static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, isTooLarge) = one.addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }

    private func session(of authenticator: some Authenticator) -> any TokenSession {
        AuthenticatorSession(authenticator, self)
    }

    /// Whether the current task refreshes this agent's token. Active runs wait for the requests of such a task.
    var isRefreshing: Bool {
        guard let scope = RefreshScope.current, scope.core == ObjectIdentifier(self) else { return false }
        return !scope.isOver.load(ordering: .relaxed)
    }

    /// A shutdown waits for it within the grace period: a refresh may have to store the token that it was given.
    func refreshBegan() { state.withLock { $0.refreshes += 1 } }

    func refreshEnded() {
        state.withLock { state in
            state.refreshes -= 1
            return state.becameIdle()
        }.act()
    }

    /// Whether new runs are refused.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Whether the cookie jar may have cookies to send.
    var hasCookies: Bool { configuration.keepsCookies && transport.hasCookies }

    /// Grows whenever a cookie of the jar is set. Which cookies a request gets is decided when it leaves the queue: a
    /// jar that was filled since may have given it some, even if it is empty again.
    var cookieAdditions: UInt64 { configuration.keepsCookies ? transport.cookieAdditions : 0 }

    /// The cache policy of a request, or the configuration's if the request uses that.
    func cachePolicy<R: Request>(of request: R) -> CachePolicy {
        let policy = request.cachePolicy
        if case .configured = policy.kind { return configuration.cachePolicy }
        return policy
    }

    /// Whether a refused token or a challenge may lead to another attempt.
    var asksBack: Bool { configuration.authenticator != nil || configuration.credentialProvider != nil }

    /// A request that may be retried adds to its host's retry budget when it is first sent.
    func payForRetries(_ url: String) {
        if let host = HostKey(url: url) { retryAccounts.deposit(host.authority) }
    }

    /// The next run number.
    var nextNumber: UInt64 { numbers.add(1, ordering: .relaxed).newValue }

    /// Submits a transfer of a run. The run gets exactly one result in every case, perhaps before this returns. Further
    /// transfers of a run need no admission. A run that `mayBeRetried` adds to the retry budget when it is admitted.
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
            // The runs that wait for a new token have been admitted, and end only with it.
            if state.table.count + state.resting >= maxRuns && !goesOn && !isRefreshing {
                return .failure(.queueFull(limit: configuration.limits.queueLength, url: run.url))
            }
            if goesOn { state.resting -= 1 }
            state.hold(self)
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
            // In this order, because shutdown waits for callbacks that are on their way.
            refuse(run, RequestError(error, url: run.url))
            return take(id)
        }
        if !run.handedOver(as: id) { return transport.cancel(id) }
        guard let group = run.inherited else { return }
        // The priority may have changed before the transfer had an id.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if let now = group.priority?.ring, now != built.transfer.ring { transport.setRing(now, of: id) }
    }

    /// Ends a run that never reached the transport.
    func refuse(_ run: Run, _ error: RequestError) { answer(run, .refused(error)) }

    /// Hands a run over to the exchange, which sends it.
    func handOver(_ run: Run, to control: RunControl) {
        // The processing queue may be blocked.
        let error = admit(control, url: run.url, waitsForApplication: run.goesByQueues)
        if let error { refuse(run, error) } else { answer(run, .unsent) }
    }

    /// Ends a run that the transport does not know.
    func answer(_ run: Run, _ answer: Answer) {
        run.source?.close()
        var turn: [CallbackRun] = []
        run.answer(answer, into: &turn)
        if turn.isEmpty { return }
        state.withLock { state in
            state.undelivered += turn.count
            for run in turn {
                // `cancelAll` finds it there.
                let id = state.table.insertAnswered(run)
                if !run.handedOver(as: id) { state.table.remove(id) }
            }
        }
        process(turn)
    }

    /// Cancels a run that a task waits for.
    func cancel(_ run: Run) {
        if let id = run.cancelled() { transport.cancel(id) }
    }

    /// Cancels all runs, or those with a tag.
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

    // MARK: Results, on an event loop's thread

    fileprivate func transfersFinished(_ results: [TransferResult]) {
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

    // MARK: Runs with callbacks

    /// Processes the runs of one turn: one hop to the processing queue, and one from there to each callback queue.
    func process(_ turn: [CallbackRun]) {
        processingQueue.async {
            dispatchPrecondition(condition: .onQueue(self.processingQueue))
            // Usually no run continues and all have the same queue: then the turn is handed on unchanged.
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
                // These are processed again, and keep their positions because they are in the same order.
                var again = cancelled[...]
                for run in runs {
                    if run === again.first { again.removeFirst() } else { state.table.remove(run.id) }
                }
                return state.becameIdle()
            }.act()
            // Released outside the lock, because this may release what only a closure holds.
            withExtendedLifetime(runs) {}
        }
    }
}

/// Passes the reports of the transport to the core. The transport holds it weakly; it holds the core while the core has
/// runs, so that nothing refers to the core itself weakly: that would make each retain and release of it slower.
final class CoreReceiver: TransferReceiver {
    private let core = Mutex<AgentCore?>(nil)
    private let log: RunLog?

    fileprivate init(_ log: RunLog?) { self.log = log }

    fileprivate func hold(_ core: AgentCore) { self.core.withLock { $0 = core } }

    fileprivate func letGo() -> AgentCore? { core.withLock { $0.take() } }

    private func run(_ id: TransferID) -> Run? { core.withLock { $0 }?.state.withLock { $0.table[id] } }

    func transfersFinished(_ results: [TransferResult]) { core.withLock { $0 }?.transfersFinished(results) }

    func transferStarted(_ id: TransferID) { run(id)?.started() }

    func transfer(_ id: TransferID, receivedHead head: TransferResult) { run(id)?.received(head: head) }

    func transfer(_ id: TransferID, receivedInformational head: UnsafeRawBufferPointer) {
        run(id)?.received(informational: head)
    }

    func transfer(_ id: TransferID, answered result: TransferResult) { run(id)?.answered(result) }

    func transfer(_ id: TransferID, fillTrailers space: UnsafeMutableRawBufferPointer) -> Int? {
        run(id)?.fillTrailers(space)
    }

    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow {
        run(id)?.received(chunk: chunk) ?? .proceed
    }

    func transfer(_ id: TransferID, written count: UInt64) { run(id)?.written(count) }

    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill {
        run(id)?.fill(space) ?? .failed
    }

    func trustChanged(fault: String?) { log?.trustChanged(fault: fault) }
}

/// What to do after releasing the lock, now that nothing is active.
struct IdleAction {
    var keep: AgentCore?
    var waiters: [UnsafeContinuation<Void, Never>] = []

    /// Resumes the waiting tasks, and releases the core, which may deallocate it.
    consuming func act() {
        for waiter in waiters { waiter.resume() }
    }
}

extension AgentCore.State {
    /// Whether a run may start in the grace period: only a part of what is active may, a member of a group or a request
    /// of a token refresh.
    func letsIn(_ isPart: Bool) -> Bool { isPart && !isOver }

    /// Checks whether everything has ended, and what to do then.
    mutating func becameIdle() -> IdleAction {
        var action = IdleAction()
        if table.count > 0 || controls.count > waitingForApplication.count { return action }
        if controls.isEmpty { action.keep = letGo() }
        if waiters.isEmpty { return action }
        waiters.removeAll { waiter in
            let isIdle =
                undelivered == 0 && undecided == 0 && refreshes == 0 && groups.isEmpty && controls.isEmpty
            let mayReturn = isIdle || waiter.isOver || (waiter.follows && isOver)
            guard mayReturn, let continuation = waiter.continuation.take() else { return false }
            action.waiters.append(continuation)
            return true
        }
        return action
    }
}

import FerryCache
import FerryTransport
import Synchronization

extension AgentCore {
    /// `send` of a request that the cache or others have a part in. A hit from memory does not leave the caller's
    /// thread.
    @inline(never)
    nonisolated(nonsending) func send<R: Request>(
        _ request: R, by mode: CacheMode, in group: GroupRun? = nil, cached: (@Sendable (Reply<R.Value>) -> Void)? = nil
    ) async throws(RequestError) -> Reply<R.Value> {
        let servers = builder.servers
        var run = CachedRun(request, mode, self, at: servers, in: group)
        if cached == nil, isOnNoActor(), let reply = try run.replyFromMemory(request, self) { return reply }
        run.start = .now
        if let cached { await run.tell(cached, of: request, self) }
        return try await run.send(request, self, at: servers)
    }
}

/// A run that a task waits for, on its way through the cache.
struct CachedRun: Sendable {
    private var plan: CachePlan?
    private var mode: CacheMode
    private let url: String
    /// It cannot be sent, and why.
    private let refusal: RequestError?
    private let watch: RunWatch?
    /// `nil` where nobody observes it.
    private let began: ContinuousClock.Instant?
    /// Set when memory had nothing for it: from here on it may have to wait.
    fileprivate var start: ContinuousClock.Instant?
    /// Once it was let in: it is the same until the run is over, so that a shutdown waits for it.
    private var journey: Journey?
    /// The batch or chain whose member it is.
    private let group: GroupRun?

    init<R: Request>(_ request: R, _ mode: CacheMode, _ core: AgentCore, at servers: Servers, in group: GroupRun?) {
        self.mode = mode
        self.group = group
        do throws(RequestError) {
            let target = try core.builder.cacheTarget(request, at: servers)
            (plan, url, refusal) = (core.plan(for: request, target, mode), target.url, nil)
        } catch {
            (plan, url, refusal) = (nil, error.url, error)
        }
        watch = core.begin(request, url: url, in: group)
        began = watch.map { _ in .now }
    }

    /// The reply, if memory has one that is fresh and passes the checks. Thrown and returned, not wrapped up: it is
    /// what most runs of a cache come to.
    @inline(__always)
    mutating func replyFromMemory<R: Request>(
        _ request: R, _ core: AgentCore
    ) throws(RequestError) -> Reply<R.Value>? {
        // A group that is over gives its reason on the long way.
        if let group, group.refusal() != nil { return nil }
        guard let plan, !withUnsafeCurrentTask(body: { $0?.isCancelled ?? false }),
            let hit = core.recall(plan, of: request), !core.isClosed
        else { return nil }
        if watch != nil { return try watchedReply(request, hit.answer, core) }
        var times = ProcessingTimes(isMeasured: false)
        do throws(RequestError) {
            let reply = try core.builder.validated(request, hit.answer, url: url, &times)
            request.completionPreprocessor(reply)
            request.completionFilter(reply)
            return reply
        } catch {
            return try rejected(request, error, core)
        }
    }

    private mutating func watchedReply<R: Request>(
        _ request: R, _ answer: Answer, _ core: AgentCore
    ) throws(RequestError) -> Reply<R.Value>? {
        var times = ProcessingTimes(isMeasured: true)
        times.begin()
        let reply = made(request, answer, core, &times)
        if case .failure = reply, mode.asksNetwork {
            reload(core)
            return nil
        }
        return try concluded(request, reply, answer, &times, core).get()
    }

    /// A hit did not pass the checks: the network is asked, where it may be.
    private mutating func rejected<R: Request>(
        _ request: R, _ error: RequestError, _ core: AgentCore
    ) throws(RequestError) -> Reply<R.Value>? {
        if mode.asksNetwork {
            reload(core)
            return nil
        }
        request.failurePreprocessor(error)
        request.failureFilter(error)
        throw error
    }

    /// Gives the caller what the cache has; from here on only the network counts.
    @concurrent
    mutating func tell<R: Request>(
        _ cached: @Sendable (Reply<R.Value>) -> Void, of request: R, _ core: AgentCore
    ) async {
        mode = .reload
        guard var plan else { return }
        plan.mode = .reload
        self.plan = plan
        guard case .success(let journey) = admit(request, core) else { return }
        let end = end(of: request, core)
        let found = await withTaskCancellationHandler {
            await core.usable(plan, of: request, journey, until: end)
        } onCancel: {
            journey.end(.cancelled)
        }
        guard let found else { return }
        var times = ProcessingTimes(isMeasured: false)
        if case .success(let reply) = made(request, found, core, &times) { cached(reply) }
    }

    /// The whole way. Not on the caller's actor.
    @concurrent
    mutating func send<R: Request>(
        _ request: R, _ core: AgentCore, at servers: Servers
    ) async throws(RequestError) -> Reply<R.Value> {
        defer { if let journey { core.leave(journey) } }
        var times = ProcessingTimes(isMeasured: watch != nil)
        while true {
            let answer = await answer(request, core, at: servers)
            times.begin()
            var reply = made(request, answer, core, &times)
            if case .failure = reply, answer.isHit, mode.asksNetwork {
                reload(core)
                continue
            }
            if case .success(let made) = reply, let plan, let kept = core.kept(made.response, of: request, plan) {
                let (end, journey) = (end(of: request, core), journey)
                await withTaskCancellationHandler {
                    if let journey { await core.keep(kept, plan, journey, until: end) }
                } onCancel: {
                    journey?.end(.cancelled)
                }
                if let journey, journey.end == .cancelled { reply = .failure(journey.error(url: url)) }
            }
            return try concluded(request, reply, answer, &times, core).get()
        }
    }

    private mutating func answer<R: Request>(
        _ request: R, _ core: AgentCore, at servers: Servers
    ) async -> Answer {
        if let error = refusal ?? group?.refusal(url: url) { return .refused(error) }
        let journey: Journey
        switch admit(request, core) {
        case .success(let admitted): journey = admitted
        case .failure(let error): return .refused(error)
        }
        let (plan, mode) = (plan, mode)
        let itinerary = core.itinerary(
            of: request, nil, at: servers, url: url, watch: watch, in: group, since: start)
        return await withTaskCancellationHandler {
            await core.answer(request, plan, mode: mode, at: servers, itinerary, journey)
        } onCancel: {
            journey.end(.cancelled)
        }
    }

    /// Lets it in, unless that has happened.
    private mutating func admit<R: Request>(_ request: R, _ core: AgentCore) -> Result<Journey, RequestError> {
        if let journey { return .success(journey) }
        let journey = Journey(
            tag: request.tag, of: core, in: group, inherits: group != nil && request.inheritsPriority)
        if let error = core.admit(journey, url: url) { return .failure(error) }
        self.journey = journey
        return .success(journey)
    }

    private func end<R: Request>(of request: R, _ core: AgentCore) -> ContinuousClock.Instant? {
        core.end(of: request, since: start ?? .now, in: group)
    }

    private mutating func reload(_ core: AgentCore) {
        if let plan { core.drop(plan) }
        mode = .reload
        plan?.mode = .reload
    }

    private func made<R: Request>(
        _ request: R, _ answer: Answer, _ core: AgentCore, _ times: inout ProcessingTimes
    ) -> Result<Reply<R.Value>, RequestError> {
        Result { () throws(RequestError) in
            try core.builder.validated(request, answer, url: url, &times)
        }
    }

    private func concluded<R: Request>(
        _ request: R, _ reply: Result<Reply<R.Value>, RequestError>, _ answer: Answer, _ times: inout ProcessingTimes,
        _ core: AgentCore
    ) -> Result<Reply<R.Value>, RequestError> {
        request.preprocess(reply)
        times.end()
        core.note(reply, answer, url: url)
        guard let watch else {
            request.filter(reply)
            return reply
        }
        if case .result(let result) = answer { watch.received(result) }
        let outcome = RunOutcome(reply)
        watch.willStop(outcome, RequestMetrics(answer, times, from: began, to: times.start))
        request.filter(reply)
        watch.didStop(outcome)
        return reply
    }
}

extension AgentCore {
    /// It takes no more runs.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// An answer of the cache's that is fresh; `nil` when there is none.
    func usable<R: Request>(
        _ plan: CachePlan, of request: R, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async -> Answer? {
        switch await lookUp(plan, of: request, journey, until: deadline) {
        case .fresh(let stored, let trace)?: return Self.answer(stored, trace, plan)
        case .stale?: cache?.counters.missed(.expired)
        case .miss(let reason)?: cache?.counters.missed(reason)
        case nil: break
        }
        return nil
    }

    /// Keeps an answer; waits for the disk where the policy says so, unless the run is cancelled, and no longer than
    /// until its deadline: the answer is there.
    func keep(
        _ kept: KeptResponse, _ plan: CachePlan, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async {
        guard let cache else { return }
        switch plan.writing {
        case .asynchronous: cache.keep(kept, under: plan.key)
        case .synchronous:
            _ = await journey.wait(until: deadline) { cache.keep(kept, under: plan.key, $0) }
        }
    }
}

extension Request {
    /// What sees a result first.
    func preprocess(_ result: Result<Reply<Value>, RequestError>) {
        switch result {
        case .success(let reply): completionPreprocessor(reply)
        case .failure(let error): failurePreprocessor(error)
        }
    }
}

import Dispatch
import FerryCache
import FerryTransport

extension RequestRun {
    /// What the cache has to do with a run. On the heap: runs that wait by the thousand have none.
    final class Caching {
        var plan: CachePlan?
        var mode: CacheMode
        /// Gets what the cache has, before the network is asked.
        var cached: (@Sendable (Reply<R.Value>) -> Void)?
        /// Made by what went before the end of the run.
        var prepared: Prepared?

        init(plan: CachePlan?, mode: CacheMode, cached: (@Sendable (Reply<R.Value>) -> Void)?) {
            self.plan = plan
            self.mode = mode
            self.cached = cached
        }
    }

    /// A reply that was made before the run came to its end.
    struct Prepared {
        var reply: Result<Reply<R.Value>, RequestError>
        var times: ProcessingTimes
        /// It is on its way to the disk, or there.
        var isKept = false
    }

    /// [processing queue] Whether a hit is of no use to the run, which then goes on to the network.
    func isRejected(_ answer: Answer, _ core: AgentCore) -> Bool {
        guard caching?.mode.asksNetwork == true, answer.isHit else { return false }
        let made = make(answer, core)
        if case .success = made.reply {
            caching?.prepared = made
            return false
        }
        caching?.plan.map { core.drop($0) }
        caching?.mode = .reload
        caching?.plan?.mode = .reload
        return true
    }

    /// [in a task] The cache, the network, or both; with synchronous writing all of it up to the disk.
    func carryByCache(_ itinerary: Itinerary, _ journey: Journey, _ core: AgentCore) async -> Answer {
        defer { core.leave(journey) }
        guard let caching else { return .unsent }
        core.enter(journey)
        if caching.cached != nil { await tell(journey, core, until: itinerary.end) }
        let answer = await core.answer(
            request, caching.plan, mode: caching.mode, at: servers, itinerary, journey)
        guard caching.plan?.writing == .synchronous, let plan = caching.plan, !answer.isHit else { return answer }
        let kept = await onProcessingQueue(core) { run, core in run.prepare(answer, plan, core) }
        if let kept { await core.keep(kept, plan, journey, until: itinerary.end) }
        return answer
    }

    /// [in a task] The closure for what the cache has stands in the callback queue before any result of the network's.
    private func tell(_ journey: Journey, _ core: AgentCore, until deadline: ContinuousClock.Instant?) async {
        guard let cached = caching?.cached, var plan = caching?.plan else { return }
        caching?.cached = nil
        plan.mode = .cacheOnly
        guard let found = await core.usable(plan, of: request, journey, until: deadline) else { return }
        await onProcessingQueue(core) { run, core in
            guard case .success(let reply) = run.make(found, core).reply else { return }
            // It may be cancelled on its way: then it stays away, and the result says so.
            run.queue.async { if run.state != .cancelled { cached(reply) } }
        }
    }

    /// [processing queue] What is to be kept of an answer.
    private func prepare(_ answer: Answer, _ plan: CachePlan, _ core: AgentCore) -> KeptResponse? {
        var made = make(answer, core)
        made.isKept = true
        caching?.prepared = made
        guard case .success(let reply) = made.reply else { return nil }
        return core.kept(reply.response, of: request, plan)
    }

    /// [processing queue] The reply of a run that has come to its end.
    func conclude(_ answer: Answer, _ core: AgentCore) -> (Result<Reply<R.Value>, RequestError>, ProcessingTimes) {
        var made = caching?.prepared.take() ?? make(answer, core)
        if !made.isKept, case .success(let reply) = made.reply, let plan = caching?.plan, !answer.isHit,
            let kept = core.kept(reply.response, of: request, plan)
        {
            core.cache?.keep(kept, under: plan.key)
        }
        request.preprocess(made.reply)
        made.times.end()
        core.note(made.reply, answer, url: url)
        return (made.reply, made.times)
    }

    private func make(_ answer: Answer, _ core: AgentCore) -> Prepared {
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        let reply = Result { () throws(RequestError) in
            try core.builder.validated(request, answer, url: url, &times)
        }
        return Prepared(reply: reply, times: times)
    }

    private func onProcessingQueue<Value: Sendable>(
        _ core: AgentCore, _ body: @escaping @Sendable (RequestRun<R>, AgentCore) -> Value
    ) async -> Value {
        await withCheckedContinuation { continuation in
            core.processingQueue.async { continuation.resume(returning: body(self, core)) }
        }
    }
}

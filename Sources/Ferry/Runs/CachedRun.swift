import FerryTransport

/// A run that a task awaits and that the cache or other runs have a part in. A hit in memory does not leave the
/// caller's thread.
struct CachedRun<R: Request>: Sendable {
    private let request: R
    private let core: AgentCore
    private let servers: Servers
    private var stage: CacheStage
    private let url: String
    /// Why it cannot be sent.
    private let refusal: RequestError?
    private let watch: RunWatch?
    /// `nil` where nobody observes it.
    private let began: ContinuousClock.Instant?
    /// The batch or chain whose member it is.
    private let group: GroupRun?

    @inline(never)
    nonisolated(nonsending) static func send(
        _ request: R, _ mode: CacheMode, in group: GroupRun? = nil, by core: AgentCore,
        cached: (@Sendable (Reply<R.Value>) -> Void)? = nil
    ) async throws(RequestError) -> Reply<R.Value> {
        var run = CachedRun(request, mode, in: group, by: core)
        if cached == nil, isOnNoActor(), let reply = try run.replyFromMemory() { return reply }
        return try await run.send(since: .now, cached: cached)
    }

    private init(_ request: R, _ mode: CacheMode, in group: GroupRun?, by core: AgentCore) {
        (self.request, self.core, self.group) = (request, core, group)
        servers = core.builder.servers
        do throws(RequestError) {
            let made = try CacheStage.of(request, mode, at: servers, by: core)
            (stage, url, refusal) = (made.0, made.url, nil)
        } catch {
            (url, refusal) = (error.url, error)
            stage = CacheStage(nil, mode, by: core)
        }
        watch = RunWatch.begin(request, url: url, in: group, by: core)
        began = watch.map { _ in .now }
    }

    /// The reply, if memory has one that is fresh and passes the checks. Thrown and returned, not wrapped up: it is
    /// what most runs of a cache come to.
    @inline(__always)
    private mutating func replyFromMemory() throws(RequestError) -> Reply<R.Value>? {
        // A group that is over gives its reason on the long way, and one that calls back has its queues there.
        if let group, group.queues != nil || group.refusal() != nil { return nil }
        guard !withUnsafeCurrentTask(body: { $0?.isCancelled ?? false }),
            let hit = stage.recall(for: request), !core.isClosed
        else { return nil }
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        do throws(RequestError) {
            let reply = try core.builder.validated(request, hit, url: url, &times)
            RunEnd.succeeded(request, reply, hit, watch, by: core, &times)
            RunEnd.deliver(watch, RunOutcome(reply.response), metrics(hit, times)) {
                request.willDeliver(.success(reply))
            }
            return reply
        } catch {
            // Where the network may be asked, it is.
            if case .again = stage.next(after: hit, nil, of: request) { return nil }
            RunEnd.failed(request, error, hit, url: url, watch, by: core, &times)
            RunEnd.deliver(watch, RunOutcome(error), metrics(hit, times)) { request.willDeliver(error) }
            throw error
        }
    }

    private func metrics(_ answer: Answer, _ times: ProcessingTimes) -> RequestMetrics {
        RequestMetrics(answer, times, from: began, to: times.start)
    }

    /// The whole way. Not on the caller's actor.
    @concurrent
    private func send(
        since start: ContinuousClock.Instant, cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) async throws(RequestError) -> Reply<R.Value> {
        let control = RunControl(
            tag: request.tag, of: core, in: group, inherits: group != nil && request.inheritsPriority)
        let refusal = refusal ?? group?.refusal(url: url) ?? core.admit(control, url: url)
        defer { core.leave(control) }
        let call = Call(request, nil, at: servers, url: url, watch: watch, in: group, since: start, by: core)
        let (answer, made) = await withTaskCancellationHandler {
            await self.answer(call, control, refusal: refusal, cached: cached)
        } onCancel: {
            control.end(.cancelled)
        }
        let times = await onQueue(group?.queues?.processing) {
            var times = made.times
            RunEnd.process(request, made.reply, answer, url: url, watch, by: core, &times)
            return times
        }
        await onQueue(group?.queues?.callback) {
            RunEnd.deliver(watch, RunOutcome(made.reply), metrics(answer, times)) { request.willDeliver(made.reply) }
        }
        return try made.reply.get()
    }

    /// Until there is an answer that passes the checks, or no other is to be had.
    private func answer(
        _ call: Call, _ control: RunControl, refusal: RequestError?, cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) async -> (Answer, Made) {
        if let refusal { return (.refused(refusal), made(.refused(refusal))) }
        if let cached, let found = await stage.first(call, control), case .success(let reply) = made(found).reply {
            cached(reply)
        }
        var stage = stage
        while true {
            let answer = await stage.answer(call, control)
            var made = await onQueue(group?.queues?.processing) { self.made(answer) }
            switch stage.next(after: answer, (try? made.reply.get())?.response, of: request) {
            case .end: return (answer, made)
            case .again: continue
            case .write(let kept):
                await stage.write(kept, control, until: call.end)
                if control.end == .cancelled { made.reply = .failure(control.error(url: url)) }
                return (answer, made)
            }
        }
    }

    private struct Made: Sendable {
        var reply: Result<Reply<R.Value>, RequestError>
        var times: ProcessingTimes
    }

    private func made(_ answer: Answer) -> Made {
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        let reply = Result { () throws(RequestError) in try core.builder.validated(request, answer, url: url, &times) }
        return Made(reply: reply, times: times)
    }
}

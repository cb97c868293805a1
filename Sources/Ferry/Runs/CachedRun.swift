import FerryTransport

/// A run that a task awaits and that uses the cache or shares a transfer. A hit in memory stays on the caller's thread.
///
/// It is not generic and does not contain the request, because with a generic type each hit would look up metadata. It
/// is on the heap: as a value it would be in the frame of each function on the way, and in each of the waiting tasks.
final class CachedRun: Sendable {
    private let servers: Servers
    private let stage: CacheStage
    /// Why the request cannot be sent.
    private let refusal: RequestError?
    private let watch: RunWatch?
    /// `nil` if there are no observers.
    private let began: ContinuousClock.Instant?
    /// The batch or chain that the run is a member of.
    private let group: GroupRun?

    private var core: AgentCore { stage.core }
    private var url: String { stage.url }

    /// What the first look into memory has shown.
    private struct Findings: Sendable {
        /// Memory had nothing.
        var isAbsent = false
        /// It had a response that does not pass validation, and the network may be used.
        var isRejected = false
        /// The task was cancelled before.
        var isCancelled = false
    }

    // Whatever has the type of the value is in functions without `await`: in this one, each such variable would be
    // allocated from the task's memory.
    @inline(never)
    nonisolated(nonsending) static func send<R: Request>(
        _ request: R, _ mode: CacheMode, in group: GroupRun? = nil, by core: AgentCore,
        cached: (@Sendable (Reply<R.Value>) -> Void)? = nil
    ) async throws(RequestError) -> Reply<R.Value> {
        let run = CachedRun(request, mode, in: group, by: core)
        var findings = Findings()
        if cached == nil {
            findings.isCancelled = isTaskCancelled()
            if isOnNoActor(), let hit = run.hit(for: request, &findings) {
                do throws(RequestError) {
                    return try run.reply(request, from: hit, &findings)
                } catch {
                    if !findings.isRejected { throw error }
                }
            }
            if !findings.isRejected, let begun = run.beginValidation(of: request, findings) {
                let answer = await begun.run.answer(by: core)
                guard isOnNoActor(), let renewed = run.renewed(begun, by: answer) else {
                    return try await run.end(request, begun, after: answer)
                }
                return try run.reply(request, from: renewed, &findings)
            }
        }
        return try await run.send(request, since: .now, findings, cached: cached)
    }

    // In the function above, the closure would be allocated from the task's memory.
    private static func isTaskCancelled() -> Bool { withUnsafeCurrentTask { $0?.isCancelled ?? false } }

    @inline(never)
    private init<R: Request>(_ request: R, _ mode: CacheMode, in group: GroupRun?, by core: AgentCore) {
        self.group = group
        servers = core.builder.servers
        do throws(RequestError) {
            stage = try CacheStage.of(request, mode, at: servers, by: core)
            refusal = nil
        } catch {
            stage = CacheStage(nil, mode, url: error.url, by: core)
            refusal = error
        }
        watch = RunWatch.begin(
            request, method: stage.reading?.method.rawValue, url: stage.url, in: group, by: core)
        began = watch.map { _ in .now }
    }

    /// A fresh response in memory, which still has to pass validation.
    @inline(never)
    private func hit<R: Request>(for request: R, _ findings: inout Findings) -> Answer? {
        // A group that has ended gives its reason on the slow path, and a group with callbacks has its queues there.
        if let group, group.queues != nil || group.refusal() != nil { return nil }
        guard !findings.isCancelled,
            let hit = stage.recall(for: request, isAbsent: &findings.isAbsent), !core.isClosed
        else { return nil }
        return hit
    }

    /// The reply, if the cache has one that is fresh and passes the checks; otherwise `found` is what it has. It needs
    /// no record of the request and no queue.
    private func replyFromDisk<R: Request>(
        _ request: R, _ control: RunControl, since start: ContinuousClock.Instant, _ findings: inout Findings,
        found: inout CacheStage.Found?
    ) async throws(RequestError) -> Reply<R.Value>? {
        guard group?.queues == nil, !findings.isRejected, stage.mode.reads, let plan = stage.plan else { return nil }
        let isAbsent = findings.isAbsent
        let end = Call.end(of: request, from: start, in: group, by: core)
        found = await withTaskCancellationHandler {
            // A cancelled task gets no hit either.
            if control.end != nil { return .brokenOff }
            return await stage.find(for: request, plan, control, until: end, isAbsent: isAbsent)
        } onCancel: {
            control.end(.cancelled)
        }
        guard case .fresh(let stored, let trace) = found?.verdict else { return nil }
        do throws(RequestError) {
            return try reply(request, from: Answer(stored, trace, plan), &findings, control)
        } catch {
            if !findings.isRejected { throw error }
        }
        // The response did not pass validation, and is not looked up again.
        found = nil
        return nil
    }

    /// The reply of a hit or of a validation. If it does not pass validation and the network is used, it notes so and
    /// throws an error that nobody sees. It is returned without a wrapper, because most runs of a cache end here.
    @inline(never)
    private func reply<R: Request>(
        _ request: R, from hit: Answer, _ findings: inout Findings, _ control: RunControl? = nil
    ) throws(RequestError) -> Reply<R.Value> {
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        var isDelivering = false
        defer { if isDelivering { delivered() } }
        do throws(RequestError) {
            if let control { core.waitsForApplication(control) }
            guard let watch else {
                return request.delivered(try accepted(request, hit, control, &isDelivering, &times))
            }
            let reply = try accepted(request, hit, control, &isDelivering, &times)
            RunEnd.deliver(watch, RunOutcome(reply.response), metrics(hit, times)) {
                request.willDeliver(.success(reply))
            }
            return reply
        } catch {
            var stage = stage
            if case .again = stage.next(after: hit, nil, of: request) {
                findings.isRejected = true
                if let control { core.enter(control) }
            } else {
                if let control {
                    delivers(control)
                    isDelivering = true
                }
                RunEnd.failed(request, error, hit, url: url, watch, by: core, &times)
                RunEnd.deliver(watch, RunOutcome(error), metrics(hit, times)) { request.willDeliver(error) }
            }
            throw error
        }
    }

    /// The reply, if it passes validation. With a control its delivery has begun then, and the caller ends it.
    @inline(__always)
    private func accepted<R: Request>(
        _ request: R, _ hit: Answer, _ control: RunControl?, _ isDelivering: inout Bool, _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        let reply = try core.builder.validated(request, hit, url: url, &times)
        if let control {
            delivers(control)
            isDelivering = true
        }
        RunEnd.succeeded(request, reply, hit, watch, by: core, &times)
        return reply
    }

    /// Hooks that block must not hold a shutdown beyond the grace. For a member its group stands from here on.
    private func delivers(_ control: RunControl) {
        if group == nil { core.delivers(control) } else { core.leave(control) }
    }

    private func delivered() { if group == nil { core.delivered() } }

    private func metrics(_ answer: Answer, _ times: ProcessingTimes) -> RequestMetrics {
        RequestMetrics(answer, times, from: began, to: times.start)
    }

    // MARK: A validation by one transfer

    /// What is stored, and the transfer that validates it.
    private struct Begun: Sendable {
        let validation: PlainValidation
        let run: AwaitedRun
    }

    /// Sends a validation of the response in memory; `nil` if one plain transfer is not enough.
    @inline(never)
    private func beginValidation<R: Request>(of request: R, _ findings: Findings) -> Begun? {
        guard group == nil, refusal == nil, let http = stage.http,
            let validation = PlainValidation.of(request, http, by: core),
            let run = validation.start(request, at: servers, isCancelled: findings.isCancelled, watch, by: core)
        else { return nil }
        return Begun(validation: validation, run: run)
    }

    /// The stored response, if the server has confirmed it and changed only its dates.
    @inline(never)
    private func renewed(_ begun: Begun, by answer: Answer) -> Answer? {
        guard case .result(let result) = answer, let renewed = begun.validation.renewed(by: answer, core) else {
            return nil
        }
        core.settled(begun.run)
        watch?.received(result)
        return renewed
    }

    /// Ends the run after any other answer: an exchange handles redirects, retries and failures. Not on the caller's
    /// actor.
    @concurrent
    private func end<R: Request>(
        _ request: R, _ begun: Begun, after answer: Answer
    ) async throws(RequestError) -> Reply<R.Value> {
        var findings = Findings()
        if let renewed = renewed(begun, by: answer) { return try reply(request, from: renewed, &findings) }
        let control = begun.run.control(by: core)
        core.enter(control, from: begun.run)
        defer { core.leave(control) }
        var start = begun.run.since
        if start == nil, case .result(let result) = answer { start = .now - .microseconds(result.metrics.total) }
        return try await goOn(
            request, control, since: start, refusal: nil, findings, nil, begun: (begun, answer), cached: nil)
    }

    /// The complete path. Not on the caller's actor.
    @concurrent
    private func send<R: Request>(
        _ request: R, since start: ContinuousClock.Instant, _ findings: Findings,
        cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) async throws(RequestError) -> Reply<R.Value> {
        let control = RunControl(
            tag: request.tag, of: core, in: group, inherits: group != nil && request.inheritsPriority)
        let refusal = refusal ?? group?.refusal(url: url) ?? core.admit(control, url: url)
        defer { core.leave(control) }
        var found: CacheStage.Found?
        var findings = findings
        if refusal == nil, cached == nil,
            let reply = try await replyFromDisk(request, control, since: start, &findings, found: &found)
        {
            return reply
        }
        return try await goOn(request, control, since: start, refusal: refusal, findings, found, cached: cached)
    }

    /// The path after the first cache lookup, or without one.
    private func goOn<R: Request>(
        _ request: R, _ control: RunControl, since start: ContinuousClock.Instant?, refusal: RequestError?,
        _ findings: Findings, _ found: CacheStage.Found?, begun: (Begun, Answer)? = nil,
        cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) async throws(RequestError) -> Reply<R.Value> {
        var snapshot = begun?.0.run.snapshot.map { Result<RequestSnapshot, RequestError>.success($0) }
        if snapshot == nil, refusal == nil, stage.http != nil || stage.mode.asksNetwork {
            snapshot = stage.snapshot(of: request, at: servers)
        }
        var call = Call(request, snapshot, at: servers, url: url, watch: watch, in: group, since: start, by: core)
        if let begun { call.http = begun.0.validation.plan }
        let (answer, made) = await withTaskCancellationHandler { [call] in
            await self.answer(request, call, control, refusal: refusal, findings, found, begun, cached: cached)
        } onCancel: {
            control.end(.cancelled)
        }
        // From here on, hooks that block do not hold a shutdown beyond the grace.
        delivers(control)
        defer { delivered() }
        let times = await onQueue(group?.queues?.processing) { [self] in
            var times = made.times
            RunEnd.process(request, made.reply, answer, url: url, watch, by: core, &times)
            return times
        }
        await onQueue(group?.queues?.callback) { [self] in
            RunEnd.deliver(watch, RunOutcome(made.reply), metrics(answer, times)) { request.willDeliver(made.reply) }
        }
        return try made.reply.get()
    }

    /// Repeats until a response passes validation, or there is no other.
    private func answer<R: Request>(
        _ request: R, _ call: Call, _ control: RunControl, refusal: RequestError?, _ findings: Findings,
        _ found: CacheStage.Found?, _ begun: (Begun, Answer)?, cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) async -> (Answer, Made<R.Value>) {
        if let refusal { return (.refused(refusal), made(request, .refused(refusal))) }
        if let cached, let found = await stage.first(call, control) {
            await onQueue(nil, for: control, by: core) { [self] in
                if case .success(let reply) = made(request, found).reply { cached(reply) }
            }
        }
        var (stage, found, begun) = (findings.isRejected ? stage.afterRejection : stage, found, begun)
        while true {
            let answer: Answer
            if let (begun, first) = begun.take() {
                answer = await Exchange.answer(call, control, after: first, of: begun.validation, by: core)
            } else {
                answer = await stage.answer(call, control, after: found.take())
            }
            // The stage asks the request whether the response may be stored.
            var (made, next): (Made<R.Value>, CacheStage.Next)
            (made, next, stage) = await onQueue(group?.queues?.processing, for: control, by: core) { [stage] in
                let made = self.made(request, answer)
                var stage = stage
                let next = stage.next(after: answer, (try? made.reply.get())?.response, of: request)
                return (made, next, stage)
            }
            switch next {
            case .end: return (answer, made)
            case .again: continue
            case .write(let kept):
                await stage.write(kept, control, until: call.end)
                if control.end == .cancelled { made.reply = .failure(control.error(url: url)) }
                return (answer, made)
            }
        }
    }

    private struct Made<Value: Sendable>: Sendable {
        var reply: Result<Reply<Value>, RequestError>
        var times: ProcessingTimes
    }

    private func made<R: Request>(_ request: R, _ answer: Answer) -> Made<R.Value> {
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        let reply = Result { () throws(RequestError) in try core.builder.validated(request, answer, url: url, &times) }
        return Made(reply: reply, times: times)
    }
}

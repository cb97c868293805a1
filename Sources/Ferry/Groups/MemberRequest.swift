import Dispatch

/// A request as a member of a group, with its type taken off.
///
/// Sendable because all there is of it are the constants of the one subclass, which are Sendable.
class MemberRequest: @unchecked Sendable {
    /// What its value is made into.
    fileprivate let change: (@Sendable (Box) -> Box)?

    fileprivate init(_ change: (@Sendable (Box) -> Box)?) { self.change = change }

    static func of<R: Request>(_ request: R) -> MemberRequest { MemberOfType(request, nil) }

    /// Whether nobody but the transport needs to be asked for a first answer.
    func isTransfer(for core: AgentCore) -> Bool { hasType() }

    /// Begins it; `reader` gets its answer, perhaps before this returns.
    func begin(by core: AgentCore, in group: GroupRun, answering reader: AnswerReader) -> AwaitedRun { hasType() }

    /// Whether an answer is the last.
    func isSettled(_ answer: Answer, by core: AgentCore) -> Bool { hasType() }

    /// Goes on to its last answer.
    func goOn(_ run: AwaitedRun, _ control: RunControl, after answer: Answer, by core: AgentCore) async -> Answer {
        hasType()
    }

    /// Makes its value of its last answer, and ends it.
    func conclude(_ answer: Answer, of run: AwaitedRun, by core: AgentCore) throws(RequestError) -> Made { hasType() }

    /// Likewise on the queues of a started group. `done` gets the value on the callback queue.
    func conclude(
        _ answer: Answer, of run: AwaitedRun, on queues: GroupRun.Queues, by core: AgentCore,
        then done: @escaping @Sendable (Result<Made, RequestError>) -> Void
    ) { hasType() }

    /// Likewise on the queues of the group, if it has some.
    final nonisolated(nonsending) func end(
        _ answer: Answer, of run: AwaitedRun, in group: GroupRun, by core: AgentCore
    ) async -> Result<Made, RequestError> {
        guard let queues = group.queues else {
            return Result { () throws(RequestError) in try conclude(answer, of: run, by: core) }
        }
        return await withCheckedContinuation { continuation in
            conclude(answer, of: run, on: queues, by: core) { continuation.resume(returning: $0) }
        }
    }

    /// All of that in one task.
    nonisolated(nonsending) func send(by core: AgentCore, in group: GroupRun) async throws(RequestError) -> Made {
        hasType()
    }

    /// The same, with another value made of its own.
    func map(_ change: @escaping @Sendable (Box) -> Box) -> MemberRequest { hasType() }

    private func hasType() -> Never { preconditionFailure("a request has a type") }
}

private final class MemberOfType<R: Request>: MemberRequest, @unchecked Sendable {
    private let request: R

    init(_ request: R, _ change: (@Sendable (Box) -> Box)?) {
        self.request = request
        super.init(change)
    }

    override func isTransfer(for core: AgentCore) -> Bool { !CacheStage.applies(to: request, in: core) }

    override func begin(by core: AgentCore, in group: GroupRun, answering reader: AnswerReader) -> AwaitedRun {
        AwaitedRun.start(request, in: group, answering: reader, by: core)
    }

    override func isSettled(_ answer: Answer, by core: AgentCore) -> Bool {
        Exchange.isSettled(answer, of: request, by: core)
    }

    override func goOn(
        _ run: AwaitedRun, _ control: RunControl, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        await run.goOn(request, control, after: answer, by: core)
    }

    override func conclude(_ answer: Answer, of run: AwaitedRun, by core: AgentCore) throws(RequestError) -> Made {
        made(try run.conclude(request, answer, by: core))
    }

    override func conclude(
        _ answer: Answer, of run: AwaitedRun, on queues: GroupRun.Queues, by core: AgentCore,
        then done: @escaping @Sendable (Result<Made, RequestError>) -> Void
    ) {
        queues.processing.async { [self] in
            var times = ProcessingTimes(isMeasured: run.watch != nil)
            let reply = Result { () throws(RequestError) in
                try RunEnd.process(request, answer, url: run.url, run.watch, by: core, &times)
            }
            let measured = times
            queues.callback.async { [self] in
                RunEnd.deliver(run.watch, RunOutcome(reply), RequestMetrics(answer, measured)) {
                    request.willDeliver(reply)
                }
                done(reply.map(made))
            }
        }
    }

    override nonisolated(nonsending) func send(
        by core: AgentCore, in group: GroupRun
    ) async throws(RequestError) -> Made {
        if CacheStage.applies(to: request, in: core) {
            return made(try await CachedRun.send(request, request.cacheMode, in: group, by: core))
        }
        // On no actor: what `NetworkAgent.send(_:)` does about actors has no part here.
        let run = AwaitedRun.start(request, in: group, by: core)
        var answer = await withTaskCancellationHandler {
            await run.answer()
        } onCancel: {
            // One that ends with the agent is told so by the transport.
            if group.ending != .shutdown { core.cancel(run) }
        }
        if !isSettled(answer, by: core) { answer = await run.goOn(request, after: answer, by: core) }
        return try await end(answer, of: run, in: group, by: core).get()
    }

    override func map(_ change: @escaping @Sendable (Box) -> Box) -> MemberRequest {
        guard let first = self.change else { return MemberOfType(request, change) }
        return MemberOfType(request) { change(first($0)) }
    }

    private func made(_ reply: Reply<R.Value>) -> Made {
        let box = Box.of(reply.value)
        return Made(change?(box) ?? box, isFromCache: reply.isFromCache)
    }
}

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
    func goOn(_ run: AwaitedRun, _ journey: Journey, after answer: Answer, by core: AgentCore) async -> Answer {
        hasType()
    }

    /// Makes its value of its last answer.
    func conclude(_ answer: Answer, of run: AwaitedRun, by core: AgentCore) throws(RequestError) -> Made { hasType() }

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

    override func isTransfer(for core: AgentCore) -> Bool { !core.asksCache(request) }

    override func begin(by core: AgentCore, in group: GroupRun, answering reader: AnswerReader) -> AwaitedRun {
        core.startAwaited(request, in: group, answering: reader)
    }

    override func isSettled(_ answer: Answer, by core: AgentCore) -> Bool { core.isSettled(answer, of: request) }

    override func goOn(
        _ run: AwaitedRun, _ journey: Journey, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        await core.goOn(request, run, journey, after: answer)
    }

    override func conclude(_ answer: Answer, of run: AwaitedRun, by core: AgentCore) throws(RequestError) -> Made {
        made(try core.conclude(request, answer, of: run))
    }

    override nonisolated(nonsending) func send(
        by core: AgentCore, in group: GroupRun
    ) async throws(RequestError) -> Made {
        made(try await core.send(request, in: group))
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

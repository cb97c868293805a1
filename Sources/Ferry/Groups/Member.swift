import Dispatch

/// What can be a member of a batch or a step of a chain: a request, a batch, a chain, or one of them that may be
/// missing.
///
/// Requests are runnable as they are. A type of one's own can stand for a group by handing its member on:
///
///     struct Checkout: RequestGroup {
///         let cart: Cart
///         var groupMember: GroupMember<Receipt> { ChainRequest(Reserve(cart)).then { Pay($0) }.groupMember }
///     }
public protocol Runnable<Value>: Sendable {
    /// What it brings.
    associatedtype Value: Sendable

    /// How a group runs it. Ferry makes these; hand on that of another runnable.
    var groupMember: GroupMember<Value> { get }
}

/// Several requests that are one run: a ``BatchRequest`` or a ``ChainRequest``.
///
/// Like a request it is a description: immutable, and started as often as one likes, at once or in turn.
public protocol RequestGroup<Value>: Runnable {}

extension Request {
    /// One run of this request, observed and counted as any other.
    public var groupMember: GroupMember<Value> {
        // Of a hierarchy of classes the subclass.
        GroupMember(Member(of: type(of: self), .request(.of(self))))
    }
}

/// A step that may have nothing to do: its value is then `nil`, at once.
extension Optional: Runnable where Wrapped: Runnable {
    /// What there is brings, or `nil`.
    public typealias Value = Wrapped.Value?

    /// What there is, or nothing.
    public var groupMember: GroupMember<Wrapped.Value?> {
        self?.groupMember.map { .some($0) }
            ?? GroupMember(Member(of: Self.self, .work { _, _ throws(RequestError) in Made(.of(Wrapped.Value?.none)) }))
    }
}

/// How a group runs one of its members; made by what is ``Runnable``.
public struct GroupMember<Value: Sendable>: Sendable {
    let member: Member

    /// The box of what it brings is one of a `Value`.
    init(_ member: Member) { self.member = member }

    /// The same, with another value made of its own.
    func map<Other: Sendable>(_ change: @escaping @Sendable (Value) -> Other) -> GroupMember<Other> {
        GroupMember<Other>(member.map { Box.of(change($0.open(as: Value.self))) })
    }
}

/// A member of a group, with the type of its value taken off: what is generic asks the runtime for its types each time,
/// which takes longer than a box.
struct Member: Sendable {
    typealias Work = nonisolated(nonsending) @Sendable (AgentCore, GroupRun) async throws(RequestError) -> Made

    enum Content: Sendable {
        case request(MemberRequest)
        /// Nothing, or what is made of another member.
        case work(Work)
        /// A run of its own, with runs in it.
        case group(GroupBody)
        /// A chain that says nothing of itself as a whole: the chain it is a step of takes its links on.
        case links(ChainLinks, GroupBody)
    }

    let type: any Any.Type
    let content: Content

    init(of type: any Any.Type, _ content: Content) {
        self.type = type
        self.content = content
    }

    /// What stands in an error for a step that has no name.
    var label: MemberLabel {
        switch content {
        case .request, .work: .type(type)
        case .group(let body), .links(_, let body): .kind(body.kind)
        }
    }

    /// What it is as a run of its own. A request that stands for a group is one of a single member.
    var body: GroupBody {
        switch content {
        case .request, .work:
            GroupBody(kind: .chain, settings: GroupSettings(), total: 1) { core, group throws(RequestError) in
                try await run(core, in: group)
            }
        case .group(let body), .links(_, let body): body
        }
    }

    /// Runs it inside a group.
    nonisolated(nonsending) func run(_ core: AgentCore, in group: GroupRun) async throws(RequestError) -> Made {
        switch content {
        case .request(let request): try await request.send(by: core, in: group)
        case .work(let work): try await work(core, group)
        case .group(let body), .links(_, let body): try await GroupRun(body, in: group, by: core).send(body, by: core)
        }
    }

    /// The same, with another value made of its own.
    func map(_ change: @escaping @Sendable (Box) -> Box) -> Member {
        if case .request(let request) = content { return Member(of: type, .request(request.map(change))) }
        return Member(
            of: type,
            .work { core, group throws(RequestError) in
                let made = try await run(core, in: group)
                return Made(change(made.value), isFromCache: made.isFromCache)
            })
    }
}

/// What a member is called. The text is made when an error needs it: the runtime takes half a microsecond for it.
enum MemberLabel: Sendable, CustomStringConvertible {
    case type(any Any.Type)
    case kind(RunInfo.Kind)

    var description: String {
        switch self {
        case .type(let type): String(describing: type)
        case .kind(let kind): kind.description
        }
    }
}

/// What a member has brought.
struct Made: Sendable {
    let value: Box
    /// `nil` when nothing was asked for.
    let isFromCache: Bool?

    init(_ value: Box, isFromCache: Bool? = nil) {
        self.value = value
        self.isFromCache = isFromCache
    }
}

extension Bool? {
    /// A group is from the cache when all are that asked for something.
    mutating func addMember(isFromCache: Bool?) {
        guard let isFromCache else { return }
        self = (self ?? true) && isFromCache
    }
}

/// What a batch or a chain is to the agent.
struct GroupBody: Sendable {
    let kind: RunInfo.Kind
    let settings: GroupSettings
    /// How many members it has, or steps as far as they are known.
    let total: Int
    let work: Member.Work
}

/// A value with its type taken off, for those who know the type by the way they came to it.
///
/// Sendable because all there is of it is the constant of the one subclass, which is Sendable.
class Box: @unchecked Sendable {
    fileprivate init() {}

    /// The value, without its type.
    var content: any Sendable { preconditionFailure("a box has a value") }

    static func of<Value: Sendable>(_ value: Value) -> Box { TypedBox(value) }

    /// The value. Only debug builds look whether the type is right: a cast that asks the runtime costs as much as a
    /// link of a chain.
    final func open<Value: Sendable>(as type: Value.Type = Value.self) -> Value {
        unsafeDowncast(self, to: TypedBox<Value>.self).value
    }
}

private final class TypedBox<Value: Sendable>: Box, @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    override var content: any Sendable { value }
}

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

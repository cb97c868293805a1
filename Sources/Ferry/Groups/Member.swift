import Dispatch

/// What can be a member of a batch or a step of a chain: a request, a batch, a chain, or an optional one of these.
///
/// All requests are runnable. Your own type can represent a group by returning that group's member:
///
///     struct Checkout: RequestGroup {
///         let cart: Cart
///         var groupMember: GroupMember<Receipt> { ChainRequest(Reserve(cart)).then { Pay($0) }.groupMember }
///     }
public protocol Runnable<Value>: Sendable {
    /// The type of the value.
    associatedtype Value: Sendable

    /// How a group runs it. Ferry creates these values; return that of another runnable.
    var groupMember: GroupMember<Value> { get }
}

/// Several requests that are one run: a ``BatchRequest`` or a ``ChainRequest``.
///
/// Like a request it is an immutable description that can be started any number of times, also concurrently.
public protocol RequestGroup<Value>: Runnable {}

extension Request {
    /// One run of this request, observed and counted like any other.
    public var groupMember: GroupMember<Value> {
        // In a class hierarchy, the type of the subclass.
        GroupMember(Member(of: type(of: self), .request(.of(self))))
    }
}

/// A step that may be empty: then its value is `nil`, at once.
extension Optional: Runnable where Wrapped: Runnable {
    /// The value of the wrapped runnable, or `nil`.
    public typealias Value = Wrapped.Value?

    /// The member of the wrapped runnable, or an empty one.
    public var groupMember: GroupMember<Wrapped.Value?> {
        self?.groupMember.map { .some($0) }
            ?? GroupMember(Member(of: Self.self, .work { _, _ throws(RequestError) in Made(.of(Wrapped.Value?.none)) }))
    }
}

/// How a group runs one of its members. It is created by ``Runnable`` types.
public struct GroupMember<Value: Sendable>: Sendable {
    let member: Member

    /// The box of the member's value contains a `Value`.
    init(_ member: Member) { self.member = member }

    /// The same member with its value transformed.
    func map<Other: Sendable>(_ change: @escaping @Sendable (Value) -> Other) -> GroupMember<Other> {
        GroupMember<Other>(member.map { Box.of(change($0.open(as: Value.self))) })
    }
}

/// A type-erased member of a group. Generic code asks the runtime for its types each time, which takes longer than a
/// box.
struct Member: Sendable {
    typealias Work = nonisolated(nonsending) @Sendable (AgentCore, GroupRun) async throws(RequestError) -> Made

    enum Content: Sendable {
        case request(MemberRequest)
        /// Nothing, or work derived from another member.
        case work(Work)
        /// A run of its own that contains runs.
        case group(GroupBody)
        /// A chain without settings of its own: the chain that contains it takes its links.
        case links(ChainLinks, GroupBody)
    }

    let type: any Any.Type
    let content: Content

    init(of type: any Any.Type, _ content: Content) {
        self.type = type
        self.content = content
    }

    /// The label of a step without a name, for errors.
    var label: MemberLabel {
        switch content {
        case .request, .work: .type(type)
        case .group(let body), .links(_, let body): .kind(body.kind)
        }
    }

    /// The member as a run of its own. A request that represents a group is a group with one member.
    var body: GroupBody {
        switch content {
        case .request, .work:
            GroupBody(kind: .chain, settings: GroupSettings(), total: 1) { core, group throws(RequestError) in
                defer { group.advance(to: GroupProgress(finished: 1, total: 1)) }
                return try await run(core, in: group)
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

    /// The same member with its value transformed.
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

/// The label of a member. Its text is created when an error needs it, because the runtime takes half a microsecond for
/// it.
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

/// The result of a member.
struct Made: Sendable {
    let value: Box
    /// `nil` if nothing was requested.
    let isFromCache: Bool?

    init(_ value: Box, isFromCache: Bool? = nil) {
        self.value = value
        self.isFromCache = isFromCache
    }
}

extension Bool? {
    /// A group comes from the cache if all members that requested something do.
    mutating func addMember(isFromCache: Bool?) {
        guard let isFromCache else { return }
        self = (self ?? true) && isFromCache
    }
}

/// A batch or a chain as the agent sees it.
struct GroupBody: Sendable {
    let kind: RunInfo.Kind
    let settings: GroupSettings
    /// The number of members, or of steps known so far.
    let total: Int
    let work: Member.Work
}

/// A type-erased value, for code that knows its type from the context.
///
/// Sendable because its only content is the constant of its one subclass, which is Sendable.
class Box: @unchecked Sendable {
    fileprivate init() {}

    /// The value, without its type.
    var content: any Sendable { preconditionFailure("a box has a value") }

    static func of<Value: Sendable>(_ value: Value) -> Box { TypedBox(value) }

    /// The value. Only builds with assertions check the type: a cast that asks the runtime costs as much as a link of a
    /// chain.
    final func open<Value: Sendable>(as type: Value.Type = Value.self) -> Value {
        unsafeDowncast(self, to: TypedBox<Value>.self).value
    }
}

private final class TypedBox<Value: Sendable>: Box, @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    override var content: any Sendable { value }
}

/// A type-erased request as a member of a group.
///
/// Sendable because its only content are the constants of its one subclass, which are Sendable.
class MemberRequest: @unchecked Sendable {
    /// Transforms its value.
    fileprivate let change: (@Sendable (Box) -> Box)?

    fileprivate init(_ change: (@Sendable (Box) -> Box)?) { self.change = change }

    static func of<R: Request>(_ request: R) -> MemberRequest { MemberOfType(request, nil) }

    /// Whether only the transport is involved in a first response.
    func isTransfer(for core: AgentCore) -> Bool { hasType() }

    /// Starts it; `reader` gets its result, perhaps before this returns.
    func begin(by core: AgentCore, in group: GroupRun, answering reader: AnswerReader) -> AwaitedRun { hasType() }

    /// Continues to its last response.
    func goOn(_ run: AwaitedRun, _ control: RunControl, after answer: Answer, by core: AgentCore) async -> Answer {
        hasType()
    }

    /// Creates its value from its last response, and ends it.
    func conclude(_ answer: Answer, of run: AwaitedRun, by core: AgentCore) throws(RequestError) -> Made { hasType() }

    /// The same on the queues of a started group. `done` gets the value on the callback queue.
    func conclude(
        _ answer: Answer, of run: AwaitedRun, on queues: GroupRun.Queues, by core: AgentCore,
        then done: @escaping @Sendable (Result<Made, RequestError>) -> Void
    ) { hasType() }

    /// The same on the queues of the group, if it has any.
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

    /// Does all of this in one task.
    nonisolated(nonsending) func send(by core: AgentCore, in group: GroupRun) async throws(RequestError) -> Made {
        hasType()
    }

    /// The same request with its value transformed.
    func map(_ change: @escaping @Sendable (Box) -> Box) -> MemberRequest { hasType() }

    private func hasType() -> Never { preconditionFailure("a request has a type") }
}

private final class MemberOfType<R: Request>: MemberRequest, @unchecked Sendable {
    private let request: R

    init(_ request: R, _ change: (@Sendable (Box) -> Box)?) {
        self.request = request
        super.init(change)
    }

    override func isTransfer(for core: AgentCore) -> Bool { !core.usesCache(request) }

    override func begin(by core: AgentCore, in group: GroupRun, answering reader: AnswerReader) -> AwaitedRun {
        AwaitedRun.start(request, nil, in: group, answering: reader, by: core)
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
        if core.usesCache(request) {
            return made(try await CachedRun.send(request, request.cacheMode, in: group, by: core))
        }
        // On no actor: what `NetworkAgent.send(_:)` does about actors does not matter here.
        let run = AwaitedRun.start(request, in: group, by: core)
        var answer = await withTaskCancellationHandler {
            await run.answer()
        } onCancel: {
            // The transport notifies a run that ends with the agent.
            if group.ending != .shutdown { core.cancel(run) }
        }
        if !run.isSettled(answer, by: core) { answer = await run.goOn(request, after: answer, by: core) }
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

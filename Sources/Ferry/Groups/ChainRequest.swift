/// Requests, batches and chains that run one after another, as one run with one result. Each step is created from the
/// value before.
///
///     let receipt = try await agent.send(                                       // A → (B and C) → D
///         ChainRequest(SignUp(name: "kim"))
///             .then { BatchRequest(UserInfo(id: $0.id), Orders(of: $0.id)) }
///             .then { user, orders in Pay(user: user, orders: orders) })
///
/// A step that returns a chain is replaced by that chain's steps while the chain runs. A step that returns `nil` of an
/// optional type runs nothing. The first failure ends the chain: later steps never start, and
/// ``RequestError/failedIndex`` and ``RequestError/failedStep`` identify the failed step. An error thrown by a closure
/// ends the chain: a `RequestError` unchanged, a `CancellationError` as `cancelled`, any other as `applicationError`.
///
/// Closures run in the chain's task, on no actor. When the chain is cancelled or its deadline passes, an active closure
/// is cancelled and waited for: a closure that ignores cancellation delays the result.
public struct ChainRequest<Value: Sendable>: RequestGroup {
    var settings = GroupSettings()
    private let links: ChainLinks

    private init(_ links: ChainLinks, _ settings: GroupSettings = GroupSettings()) {
        self.links = links
        self.settings = settings
    }

    /// Creates a chain with one step, to which you can add further steps.
    public init<First: Runnable>(_ first: First, name: String? = nil) where Value == First.Value {
        self.init(
            ChainLinks(first: Box.of(()), links: [.step(name: name) { _ in first.groupMember.member }]))
    }

    /// Creates a chain that starts with a value.
    public init(value: Value) { self.init(ChainLinks(first: Box.of(value), links: [])) }

    /// Adds a step that is created from the current value. If it fails, the error has the `name`; the default is the
    /// type of its request.
    public func then<Next: Runnable>(
        _ name: String? = nil, _ step: nonisolated(nonsending) @escaping @Sendable (Value) async throws -> Next
    ) -> ChainRequest<Next.Value> {
        adding(.step(name: name) { try await step($0.open(as: Value.self)).groupMember.member })
    }

    /// Replaces the current value by another one that is computed from it.
    public func map<Mapped: Sendable>(
        _ transform: nonisolated(nonsending) @escaping @Sendable (Value) async throws -> Mapped
    ) -> ChainRequest<Mapped> {
        adding(.map { Box.of(try await transform($0.open(as: Value.self))) })
    }

    /// Calls a closure with the current value before the next step starts. If it throws, the chain fails.
    public func onValue(_ look: nonisolated(nonsending) @escaping @Sendable (Value) async throws -> Void)
        -> ChainRequest<Value>
    {
        adding(.look { try await look($0.open(as: Value.self)) })
    }

    private func adding<Other: Sendable>(_ link: ChainLink) -> ChainRequest<Other> {
        var links = links
        links.links.append(link)
        return ChainRequest<Other>(links, settings)
    }

    /// The chain as one run. If the chain has no settings of its own, it becomes steps of the chain that contains it.
    public var groupMember: GroupMember<Value> {
        let links = links
        let body = GroupBody(kind: .chain, settings: settings, total: links.steps) { core, group throws(RequestError) in
            try await ChainRun.run(links, in: group, by: core)
        }
        return GroupMember(Member(of: Self.self, settings.isPlain ? .links(links, body) : .group(body)))
    }
}

/// A type-erased link of a chain.
enum ChainLink: Sendable, ChainLinkKind {
    /// Computes the next thing from the current value, in the task of the chain, because a change of executors would
    /// cost more than most computations.
    typealias Making<Result> = nonisolated(nonsending) @Sendable (Box) async throws -> Result

    /// The next run, created from the current value.
    case step(name: String?, Making<Member>)
    /// Another value.
    case map(Making<Box>)
    /// A call with the value.
    case look(Making<Void>)

    var isStep: Bool { if case .step = self { true } else { false } }
}

/// The links of a chain, and the value with which the first one starts.
struct ChainLinks: Sendable {
    var first: Box
    var links: [ChainLink]

    var steps: Int { links.count(where: \.isStep) }
}

extension ChainRequest {
    /// The same chain with a tag for ``NetworkAgent/cancelAll(tagged:)``, for the chain as a whole.
    public func tagged(_ tag: String?) -> ChainRequest { changed { $0.tag = tag } }

    /// The same chain with a priority in the queue. It applies to every step with the default priority
    /// ``RequestPriority/normal``, also in nested groups. The default is `nil`, the priority of the group around it.
    public func priority(_ priority: RequestPriority?) -> ChainRequest { changed { $0.priority = priority } }

    /// The same chain with a deadline for the whole chain, from its start. At the deadline, the current step fails with
    /// `timeout(deadline)`, an active closure is cancelled, and later steps never start. The default is `nil`, the
    /// deadline of the group around it.
    public func deadline(_ deadline: Duration?) -> ChainRequest { changed { $0.deadline = deadline } }

    /// The same chain with another observer, in addition to the configuration's. Steps have their own observers.
    public func observed(by observer: any RequestObserver) -> ChainRequest { changed { $0.observers.append(observer) } }

    /// The same chain with values of the application, which Ferry does not read.
    public func userInfo(_ userInfo: [String: any Sendable]) -> ChainRequest { changed { $0.userInfo = userInfo } }

    private func changed(_ change: (inout GroupSettings) -> Void) -> ChainRequest {
        var copy = self
        change(&copy.settings)
        return copy
    }
}

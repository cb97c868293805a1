/// Requests, batches and chains one after another, as one run with one result: each step is made of the value before.
///
///     let receipt = try await agent.send(                                       // A → (B and C) → D
///         ChainRequest(SignUp(name: "kim"))
///             .then { BatchRequest(UserInfo(id: $0.id), Orders(of: $0.id)) }
///             .then { user, orders in Pay(user: user, orders: orders) })
///
/// A step that returns a chain adds that one's steps in its place, while the chain runs; one that returns `nil` of an
/// optional type runs nothing. The first failure ends the chain: later steps never start, and
/// ``RequestError/failedIndex`` and ``RequestError/failedStep`` say which one it was. What a closure throws is
/// `applicationError`, unless it is a `RequestError` already.
///
/// Closures run in the chain's task, not on an actor of their own making. When the chain is cancelled or its deadline
/// passes they are cancelled, and waited for: one that does not look at its cancellation holds up the result.
public struct ChainRequest<Value: Sendable>: RequestGroup {
    var settings = GroupSettings()
    private let links: ChainLinks

    private init(_ links: ChainLinks, _ settings: GroupSettings = GroupSettings()) {
        self.links = links
        self.settings = settings
    }

    /// A chain of one step, to be gone on with.
    public init<First: Runnable>(_ first: First, name: String? = nil) where Value == First.Value {
        self.init(
            ChainLinks(first: Box.of(()), links: [.step(name: name) { _ in first.groupMember.member }]))
    }

    /// A chain that begins with a value.
    public init(value: Value) { self.init(ChainLinks(first: Box.of(value), links: [])) }

    /// The chain with one more step, made of the value so far. `name` stands in the error if it fails; the default is
    /// the type of its request.
    public func then<Next: Runnable>(
        _ name: String? = nil, _ step: nonisolated(nonsending) @escaping @Sendable (Value) async throws -> Next
    ) -> ChainRequest<Next.Value> {
        adding(.step(name: name) { try await step($0.open(as: Value.self)).groupMember.member })
    }

    /// The chain with another value made of the one so far.
    public func map<Mapped: Sendable>(
        _ transform: nonisolated(nonsending) @escaping @Sendable (Value) async throws -> Mapped
    ) -> ChainRequest<Mapped> {
        adding(.map { Box.of(try await transform($0.open(as: Value.self))) })
    }

    /// The chain with a look at the value so far, before the next step starts. What it throws fails the chain.
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

    /// The chain as one run; or, when nothing is said of it as a whole, as steps of the chain that it is a step of.
    public var groupMember: GroupMember<Value> {
        let links = links
        let body = GroupBody(kind: .chain, settings: settings, total: links.steps) { core, group throws(RequestError) in
            try await ChainRun.run(links, in: group, by: core)
        }
        return GroupMember(Member(of: Self.self, settings.isPlain ? .links(links, body) : .group(body)))
    }
}

/// A link of a chain, with the types of the values taken off.
enum ChainLink: Sendable, ChainLinkKind {
    /// What is made of the value so far, in the task of the chain: a change of executors would cost more than most of
    /// them.
    typealias Making<Result> = nonisolated(nonsending) @Sendable (Box) async throws -> Result

    /// What is to be run next, made of the value so far.
    case step(name: String?, Making<Member>)
    /// Another value.
    case map(Making<Box>)
    /// A look at the value.
    case look(Making<Void>)

    var isStep: Bool { if case .step = self { true } else { false } }
}

/// The links of a chain, and the value that the first of them gets.
struct ChainLinks: Sendable {
    var first: Box
    var links: [ChainLink]

    var steps: Int { links.count(where: \.isStep) }
}

/// A link of a chain, with the types of the values taken off.
enum ChainLink: Sendable, ChainLinkKind {
    /// What is made of the value so far, in the task of the chain: a change of executors would cost more than most of them.
    typealias Making<Result> = nonisolated(nonsending) @Sendable (Box) async throws -> Result

    /// What is to be run next, made of the value so far.
    case step(name: String?, Making<ChainStep>)
    /// Another value.
    case map(Making<Box>)
    /// A look at the value.
    case look(Making<Void>)

    var isStep: Bool { if case .step = self { true } else { false } }
}

/// What a step turned out to be.
struct ChainStep: Sendable {
    enum Content: Sendable {
        case run(GroupMember<Box>.Work)
        /// A chain whose links take the place of the step.
        case links(ChainLinks)
    }

    let label: GroupMemberLabel
    let content: Content

    init<Value: Sendable>(_ member: GroupMember<Value>) {
        label = member.label
        if case .links(let links, _) = member.content {
            content = .links(links)
        } else {
            content = .run { core, group throws(RequestError) in
                let made = try await member.run(core, in: group)
                return Made(Box.of(made.value), isFromCache: made.isFromCache)
            }
        }
    }
}

/// The links of a chain, and the value that the first of them gets.
struct ChainLinks: Sendable {
    var first: Box
    var links: [ChainLink]

    var steps: Int { links.count(where: \.isStep) }
}

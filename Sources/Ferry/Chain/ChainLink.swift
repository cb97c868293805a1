/// A link of a chain, with the types of the values taken off.
enum ChainLink: Sendable, ChainLinkKind {
    /// What is to be run next, made of the value so far.
    case step(name: String?, @Sendable (any Sendable) async throws -> ChainStep)
    /// Another value.
    case map(@Sendable (any Sendable) async throws -> any Sendable)
    /// A look at the value.
    case look(@Sendable (any Sendable) async throws -> Void)

    var isStep: Bool { if case .step = self { true } else { false } }
}

/// What a step turned out to be.
struct ChainStep: Sendable {
    enum Content: Sendable {
        case run(GroupMember<any Sendable>.Work)
        /// A chain whose links take the place of the step.
        case links(ChainLinks)
    }

    let name: String
    let content: Content

    init<Value: Sendable>(_ member: GroupMember<Value>) {
        name = member.name
        if case .links(let links, _) = member.content {
            content = .links(links)
        } else {
            content = .run { core, group throws(RequestError) in
                let made = try await member.run(core, in: group)
                return Made(Box(value: made.value), isFromCache: made.isFromCache)
            }
        }
    }
}

/// The links of a chain, and the value that the first of them gets.
struct ChainLinks: Sendable {
    var first: any Sendable
    var links: [ChainLink]

    var steps: Int { links.count(where: \.isStep) }
}

extension Box {
    /// The value that a link before has brought.
    static func open(_ value: any Sendable) -> Value {
        guard let box = value as? Box<Value> else { preconditionFailure("a link has brought another type") }
        return box.value
    }
}

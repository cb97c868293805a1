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

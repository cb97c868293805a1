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
        case .group(let body), .links(_, let body): try await core.send(body, in: group)
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

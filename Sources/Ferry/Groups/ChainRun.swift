/// A chain under way: the machine, and the value so far.
struct ChainRun {
    /// Runs the links of a chain one after another, in the caller's task.
    nonisolated(nonsending) static func run(
        _ links: ChainLinks, in group: GroupRun, by core: AgentCore
    ) async throws(RequestError) -> Made {
        var run = ChainRun(links, group)
        while let link = try run.next() {
            do throws(RequestError) {
                try await run.perform(link, by: core)
            } catch {
                throw run.failed(error)
            }
        }
        return run.made
    }

    private var machine: ChainMachine<ChainLink>
    private let group: GroupRun
    private var value: Box
    private var isFromCache: Bool?
    /// Of the step that runs or ran last: the name it was given, and what it turned out to be.
    private var name: String?
    private var label: MemberLabel?

    private init(_ links: ChainLinks, _ group: GroupRun) {
        machine = ChainMachine(links.links)
        value = links.first
        self.group = group
    }

    private var made: Made { Made(value, isFromCache: isFromCache) }

    /// What is to be done next; `nil` at the end.
    private mutating func next() throws(RequestError) -> ChainLink? {
        // A callback may have ended the chain, or the task, or all of the agent.
        let refusal = group.refusal() ?? (Task.isCancelled ? RequestError(GroupRun.End.cancelled) : nil)
        if refusal != nil { _ = machine.interrupt() }
        defer { group.advance(to: GroupProgress(finished: machine.finished, total: machine.total)) }
        switch machine.next() {
        case .perform(let link): return link
        case .succeed: return nil
        case .fail, .stop: throw refusal ?? RequestError(GroupRun.End.cancelled)
        }
    }

    private nonisolated(nonsending) mutating func perform(_ link: ChainLink, by core: AgentCore)
        async throws(RequestError)
    {
        switch link {
        case .map(let transform):
            value = try await asked { [value] in try await transform(value) }
        case .look(let look):
            try await asked { [value] in try await look(value) }
        case .step(let name, let make):
            self.name = name
            label = nil
            let step = try await asked { [value] in try await make(value) }
            label = step.label
            switch step.content {
            case .links(let links, _):
                machine.replaceStep(by: links.links)
                value = links.first
            case .request, .work, .group:
                if let refusal = group.refusal() { throw refusal }
                let made = try await step.run(core, in: group)
                value = made.value
                isFromCache.addMember(isFromCache: made.isFromCache)
            }
        }
    }

    /// The error of the chain.
    private mutating func failed(_ error: RequestError) -> RequestError {
        guard case .fail(let step) = machine.fail() else { return error }
        return error.at(GroupPlace(kind: .chain, index: step, name: name ?? label?.description))
    }

    /// Asks code of the application's.
    private nonisolated(nonsending) func asked<Answer: Sendable>(
        _ question: nonisolated(nonsending) () async throws -> Answer
    ) async throws(RequestError) -> Answer {
        do {
            return try await question()
        } catch {
            throw .thrown(error, url: "")
        }
    }
}

/// What a chain is made of: steps, and what is done with their values.
protocol ChainLinkKind {
    /// Whether it is a step: something that is run, and counted.
    var isStep: Bool { get }
}

/// The life of a chain: events in, actions out, nothing else.
struct ChainMachine<Link: ChainLinkKind> {
    enum Action {
        /// Do this, then come again.
        case perform(Link)
        /// All is done.
        case succeed
        /// Nothing more is begun.
        case fail(step: Int)
        /// It was ended from outside.
        case stop
    }

    private enum State { case ready, working, ended }

    private var state = State.ready
    /// The next last.
    private var rest: [Link] = []
    private var stepsAhead = 0
    /// How many steps have begun.
    private(set) var begun = 0
    private var isStepRunning = false

    init(_ links: [Link]) { push(links) }

    /// The step that runs or ran last, from 0.
    var step: Int { max(begun - 1, 0) }

    /// Steps that have ended.
    var finished: Int { begun - (isStepRunning ? 1 : 0) }

    /// Steps as far as they are known.
    var total: Int { begun + stepsAhead }

    private mutating func push(_ links: [Link]) {
        rest.append(contentsOf: links.reversed())
        stepsAhead += links.count(where: \.isStep)
    }

    /// To begin with, and when the link before has ended well.
    mutating func next() -> Action {
        if state == .ended { return .stop }
        isStepRunning = false
        guard let link = rest.popLast() else {
            state = .ended
            return .succeed
        }
        state = .working
        if link.isStep {
            stepsAhead -= 1
            begun += 1
            isStepRunning = true
        }
        return .perform(link)
    }

    /// The step that runs turned out to be these links: they stand in its place, before what was to follow.
    mutating func replaceStep(by links: [Link]) {
        precondition(state == .working && isStepRunning, "only a step that runs can turn out to be more")
        begun -= 1
        isStepRunning = false
        push(links)
    }

    /// The link that was performed has failed.
    mutating func fail() -> Action {
        if state != .working { return .stop }
        state = .ended
        return .fail(step: step)
    }

    /// The chain is ended from outside. Later links never begin.
    mutating func interrupt() -> Action {
        state = .ended
        return .stop
    }
}

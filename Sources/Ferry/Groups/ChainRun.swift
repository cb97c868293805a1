/// An active chain: the state machine, and the current value.
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
    /// The given name and the type of the current or latest step.
    private var name: String?
    private var label: MemberLabel?
    /// The same of the step before. That becomes the latest again after a step whose place was taken by a chain without
    /// steps.
    private var before: (name: String?, label: MemberLabel?) = (nil, nil)

    private init(_ links: ChainLinks, _ group: GroupRun) {
        machine = ChainMachine(links.links)
        value = links.first
        self.group = group
    }

    private var made: Made { Made(value, isFromCache: isFromCache) }

    /// The next link; `nil` at the end.
    private mutating func next() throws(RequestError) -> ChainLink? {
        // A callback may have ended the chain, the task or the whole agent.
        let refusal = group.refusal() ?? (Task.isCancelled ? RequestError(GroupRun.End.cancelled) : nil)
        if refusal != nil { _ = machine.interrupt() }
        defer { group.advance(to: GroupProgress(finished: machine.finished, total: machine.total)) }
        let wasReplaced = machine.isReplaced
        switch machine.next() {
        case .perform(let link):
            // Index and name are those of one step. With no other step, they remain those of the one that was replaced.
            if wasReplaced, !machine.isReplaced, link.isStep || machine.begun > 0 { (name, label) = before }
            return link
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
            before = (self.name, label)
            (self.name, label) = (name, nil)
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
        let action = machine.fail()
        group.advance(to: GroupProgress(finished: machine.finished, total: machine.total))
        guard case .fail(let step) = action else { return error }
        return error.at(GroupPlace(kind: .chain, index: step, name: name ?? label?.description))
    }

    /// Calls code of the application.
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

/// The links of a chain: steps, and what is done with their values.
protocol ChainLinkKind {
    /// Whether it is a step, that is, something that runs and is counted.
    var isStep: Bool { get }
}

/// The state machine of a chain: it takes events and returns actions.
struct ChainMachine<Link: ChainLinkKind> {
    enum Action {
        /// Perform this link, then call `next` again.
        case perform(Link)
        /// The chain has succeeded.
        case succeed
        /// The chain has failed, and nothing more starts.
        case fail(step: Int)
        /// The chain was ended from outside.
        case stop
    }

    private enum State { case ready, working, ended }

    private var state = State.ready
    /// In reverse order: the next link is last.
    private var rest: [Link] = []
    private var stepsAhead = 0
    /// The number of steps that have started.
    private(set) var begun = 0
    private var isStepRunning = false
    /// The number of links behind those of the chain that the latest step was, as long as none of its steps has taken
    /// the place of that step.
    private var behindReplaced: Int?

    init(_ links: [Link]) { push(links) }

    /// The index of the current or latest step, from 0.
    var step: Int { behindReplaced != nil ? begun : max(begun - 1, 0) }

    /// Whether the latest step is replaced by a chain of whose steps none has begun.
    var isReplaced: Bool { behindReplaced != nil }

    /// The number of steps that have ended.
    var finished: Int { begun - (isStepRunning ? 1 : 0) }

    /// The number of steps known so far.
    var total: Int { begun + stepsAhead }

    private mutating func push(_ links: [Link]) {
        rest.append(contentsOf: links.reversed())
        stepsAhead += links.count(where: \.isStep)
    }

    /// Called at the start, and when the link before has succeeded.
    mutating func next() -> Action {
        if state == .ended { return .stop }
        isStepRunning = false
        guard let link = rest.popLast() else {
            state = .ended
            return .succeed
        }
        state = .working
        if let behind = behindReplaced, rest.count < behind { behindReplaced = nil }
        if link.isStep {
            stepsAhead -= 1
            begun += 1
            (isStepRunning, behindReplaced) = (true, nil)
        }
        return .perform(link)
    }

    /// The current step is a chain: its links replace the step.
    mutating func replaceStep(by links: [Link]) {
        precondition(state == .working && isStepRunning, "only a step that runs can turn out to be more")
        begun -= 1
        (isStepRunning, behindReplaced) = (false, rest.count)
        push(links)
    }

    /// The current link has failed.
    mutating func fail() -> Action {
        isStepRunning = false
        if state != .working { return .stop }
        state = .ended
        return .fail(step: step)
    }

    /// Ends the chain from outside. Later links never start.
    mutating func interrupt() -> Action {
        state = .ended
        return .stop
    }
}

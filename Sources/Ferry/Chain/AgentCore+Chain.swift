extension AgentCore {
    /// Runs the links of a chain one after another, in the caller's task.
    nonisolated(nonsending) func runChain(
        _ links: ChainLinks, in group: GroupRun
    ) async throws(RequestError) -> Made {
        var run = ChainRun(links, group)
        while let link = try run.next() {
            do throws(RequestError) {
                try await run.perform(link, by: self)
            } catch {
                throw run.failed(error)
            }
        }
        return run.made
    }
}

/// A chain under way: the machine, and the value so far.
private struct ChainRun {
    private var machine: ChainMachine<ChainLink>
    private let group: GroupRun
    private var value: Box
    private var isFromCache: Bool?
    /// Of the step that runs or ran last: the name it was given, and what it turned out to be.
    private var name: String?
    private var label: MemberLabel?

    init(_ links: ChainLinks, _ group: GroupRun) {
        machine = ChainMachine(links.links)
        value = links.first
        self.group = group
    }

    var made: Made { Made(value, isFromCache: isFromCache) }

    /// What is to be done next; `nil` at the end.
    mutating func next() throws(RequestError) -> ChainLink? {
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

    nonisolated(nonsending) mutating func perform(_ link: ChainLink, by core: AgentCore) async throws(RequestError) {
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
    mutating func failed(_ error: RequestError) -> RequestError {
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

/// Where a member of a batch stands.
enum BatchMember: Sendable {
    /// What is under way with no task of its own.
    struct Transfer: Sendable {
        let request: MemberRequest
        let run: AwaitedRun
    }

    /// What a task of its own carries.
    enum Errand: Sendable {
        /// A request that takes more than one transfer.
        case journey(Journey)
        /// A group, or a request that asks the cache.
        case task(RunningTask)
    }

    case waiting
    case beginning
    /// Answered before its beginning was over.
    case answered(Answer)
    case transfer(Transfer)
    case errand(Errand)
    case ended(Result<Box, RequestError>)

    /// What it came to; `nil` before its end.
    var result: Result<Box, RequestError>? {
        if case .ended(let result) = self { result } else { nil }
    }

    /// Ends what runs of it. A transfer that ends with the agent is told so by the transport.
    func end(by core: AgentCore, in group: GroupRun) {
        switch self {
        case .transfer(let transfer): if group.ending != .shutdown { core.cancel(transfer.run) }
        case .errand(.journey(let journey)): journey.end(group.ending == .shutdown ? .shutdown : .cancelled)
        case .errand(.task(let task)): task.cancel()
        case .waiting, .beginning, .answered, .ended: break
        }
    }
}

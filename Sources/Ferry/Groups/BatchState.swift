/// The state machine of a batch: it takes events and returns actions.
///
/// Members start one after another, up to the limit, so that a waiting member costs nothing.
struct BatchMachine: Sendable {
    enum Mode: Sendable { case failFast, collectAll }

    /// How the batch has ended.
    enum End: Sendable, Equatable {
        /// All members have ended; in fail-fast mode, all have succeeded.
        case complete
        /// This member was the first to fail.
        case failed(Int)
        /// The batch was ended from outside.
        case interrupted
    }

    enum Action: Equatable {
        /// The next member may start.
        case goOn
        /// The first reason to stop: cancel the active members.
        case stop
    }

    let count: Int
    let mode: Mode
    /// The maximum number of active members, not more than there are members.
    let limit: Int
    private(set) var begun = 0
    private(set) var ended = 0
    /// Why it does not continue.
    private var stop: End?

    init(count: Int, atMost limit: Int, mode: Mode) {
        self.count = count
        self.mode = mode
        self.limit = min(count, max(limit, 1))
    }

    var running: Int { begun - ended }

    /// `nil` while members are active or may still start.
    var end: End? {
        if running > 0 { return nil }
        return stop ?? (ended == count ? .complete : nil)
    }

    /// The member that starts now; `nil` if none may.
    mutating func next() -> Int? {
        if stop != nil || begun == count || running == limit { return nil }
        begun += 1
        return begun - 1
    }

    /// A member has ended. `interrupted` means that the whole batch was ended.
    mutating func ended(_ index: Int, well: Bool, interrupted: Bool = false) -> Action {
        precondition(running > 0 && index < begun, "a member ended that does not run")
        ended += 1
        if interrupted { return stop(by: .interrupted) }
        if well || mode == .collectAll { return stop == nil ? .goOn : .stop }
        return stop(by: .failed(index))
    }

    /// Ends the batch from outside; has no effect if it has ended.
    mutating func interrupt() -> Action { end == nil ? stop(by: .interrupted) : .stop }

    private mutating func stop(by reason: End) -> Action {
        if stop == nil { stop = reason }
        return .stop
    }
}

/// The state of the members, and the resulting work.
struct BatchState {
    typealias Queue = BatchWorkQueue

    /// What a worker does next.
    enum Next {
        case work(Queue.Work)
        case rest
        /// There is no work left.
        case leave
    }

    private(set) var machine: BatchMachine
    var members: [BatchMember]
    var work = Queue()
    /// A worker is starting a member; others wait with the next, so that members start in order.
    private var isBeginning = false
    /// The active members are being ended.
    var isEnding = false
    /// It was ended from outside.
    private var isCancelled = false
    /// Whether all results so far came from a cache; `nil` while that is unknown.
    private(set) var isFromCache: Bool?
    /// The error with which it was ended from outside.
    private(set) var interruption: RequestError?

    init(_ machine: BatchMachine) {
        self.machine = machine
        members = Array(repeating: .waiting, count: machine.count)
    }

    var progress: GroupProgress { GroupProgress(finished: machine.ended, total: machine.count) }

    /// Ends the batch from outside.
    mutating func interrupt() {
        isCancelled = true
        _ = machine.interrupt()
    }

    /// The next work of a worker that has done `last`.
    mutating func next(after last: Queue.Work?) -> Next {
        if case .begin = last { isBeginning = false }
        if let work = work.pop() { return .work(work) }
        if !isBeginning, let index = machine.next() {
            members[index] = .beginning
            isBeginning = true
            return .work(.begin(index))
        }
        return machine.end == nil ? .rest : .leave
    }

    /// A member has ended.
    mutating func ended(
        _ index: Int, _ made: Result<Made, RequestError>, isGroupEnding: Bool
    ) -> BatchMachine.Action {
        switch made {
        case .success(let made):
            members[index] = .ended(.success(made.value))
            isFromCache.addMember(isFromCache: made.isFromCache)
            return machine.ended(index, well: true)
        case .failure(let error):
            members[index] = .ended(.failure(error))
            isFromCache = false
            let isInterrupted = isCancelled || isGroupEnding
            if isInterrupted, interruption == nil { interruption = error }
            return machine.ended(index, well: false, interrupted: isInterrupted)
        }
    }

    /// The resting workers, when no more work will arrive.
    mutating func freeWorkers() -> [Queue.Worker] {
        machine.end == nil ? [] : work.takeResting()
    }
}

/// The state of a member of a batch.
enum BatchMember: Sendable {
    /// An active transfer without a task of its own.
    struct Transfer: Sendable {
        let request: MemberRequest
        let run: AwaitedRun
    }

    /// A member with its own task.
    enum OwnTask: Sendable {
        /// A request that takes more than one transfer.
        case control(RunControl)
        /// A group, or a request that uses the cache.
        case task(RunningTask)
    }

    case waiting
    case beginning
    /// The result arrived during the start.
    case answered(Answer)
    case transfer(Transfer)
    case ownTask(OwnTask)
    case ended(Result<Box, RequestError>)

    /// The result; `nil` before the end.
    var result: Result<Box, RequestError>? {
        if case .ended(let result) = self { result } else { nil }
    }

    /// Ends the active part of a member. The transport notifies a transfer that ends with the agent.
    func end(by core: AgentCore, in group: GroupRun) {
        switch self {
        case .transfer(let transfer): if group.ending != .shutdown { core.cancel(transfer.run) }
        case .ownTask(.control(let control)): control.end(group.ending == .shutdown ? .shutdown : .cancelled)
        case .ownTask(.task(let task)): task.cancel()
        case .waiting, .beginning, .answered, .ended: break
        }
    }
}

/// The work for the workers of a batch, and the workers without work.
struct BatchWorkQueue {
    /// Work that a worker does without waiting.
    enum Work: Sendable {
        case begin(Int)
        /// Create the value of a response, or find out that the run continues.
        case settle(Int, BatchMember.Transfer, Answer)
        /// Take the result of a member's task.
        case take(Int, Result<Made, RequestError>)
    }

    /// A resting worker, which is resumed with its next work, or with `nil` when all is done.
    typealias Worker = UnsafeContinuation<Work?, Never>

    /// In the order of arrival.
    private var arriving: [Work] = []
    /// Earlier work, with the next item last.
    private var leaving: [Work] = []
    private var resting: [Worker] = []

    mutating func pop() -> Work? {
        if leaving.isEmpty {
            swap(&arriving, &leaving)
            leaving.reverse()
        }
        return leaving.popLast()
    }

    /// Adds work and returns the worker to resume; the work waits if all workers are busy.
    mutating func push(_ work: Work) -> Worker? {
        if let worker = resting.popLast() { return worker }
        arriving.append(work)
        return nil
    }

    mutating func rest(_ worker: Worker) { resting.append(worker) }

    mutating func takeResting() -> [Worker] {
        defer { resting = [] }
        return resting
    }
}

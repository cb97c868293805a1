/// The life of a batch: events in, actions out, nothing else.
///
/// Members begin one after another, as many at once as may, so that one that waits costs nothing.
struct BatchMachine: Sendable {
    enum Mode: Sendable { case failFast, collectAll }

    /// What the batch came to.
    enum End: Sendable, Equatable {
        /// All members have ended; in fail-fast mode well.
        case complete
        /// This member was the first to fail.
        case failed(Int)
        /// It was ended from outside.
        case interrupted
    }

    enum Action: Equatable {
        /// The next may begin.
        case goOn
        /// The first reason not to go on: cancel what runs.
        case stop
    }

    let count: Int
    let mode: Mode
    /// How many may be under way at once; no more than there are members.
    let limit: Int
    private(set) var begun = 0
    private(set) var ended = 0
    /// Why it goes no further.
    private var stop: End?

    init(count: Int, atMost limit: Int, mode: Mode) {
        self.count = count
        self.mode = mode
        self.limit = min(count, max(limit, 1))
    }

    var running: Int { begun - ended }

    /// `nil` while members run, or may still begin.
    var end: End? {
        if running > 0 { return nil }
        return stop ?? (ended == count ? .complete : nil)
    }

    /// The member that begins now; `nil` when none may.
    mutating func next() -> Int? {
        if stop != nil || begun == count || running == limit { return nil }
        begun += 1
        return begun - 1
    }

    /// A member has ended. `interrupted` when that was because the whole batch was ended.
    mutating func ended(_ index: Int, well: Bool, interrupted: Bool = false) -> Action {
        precondition(running > 0 && index < begun, "a member ended that does not run")
        ended += 1
        if interrupted { return stop(by: .interrupted) }
        if well || mode == .collectAll { return stop == nil ? .goOn : .stop }
        return stop(by: .failed(index))
    }

    /// The batch is ended from outside; nothing when it has ended.
    mutating func interrupt() -> Action { end == nil ? stop(by: .interrupted) : .stop }

    private mutating func stop(by reason: End) -> Action {
        if stop == nil { stop = reason }
        return .stop
    }
}

/// What a batch knows of its members, and what follows from that.
struct BatchState {
    typealias Queue = BatchWorkQueue

    /// What a worker does that asks.
    enum Next {
        case work(Queue.Work)
        case rest
        /// All is done.
        case leave
    }

    private(set) var machine: BatchMachine
    var members: [BatchMember]
    var work = Queue()
    /// A worker begins a member; another waits with the next, so that they begin in their order.
    private var isBeginning = false
    /// What runs is being ended.
    var isEnding = false
    /// By somebody outside.
    private var isCancelled = false
    /// Whether all that have ended brought what was kept; `nil` while none of them says.
    private(set) var isFromCache: Bool?
    /// What ended it from outside.
    private(set) var interruption: RequestError?

    init(_ machine: BatchMachine) {
        self.machine = machine
        members = Array(repeating: .waiting, count: machine.count)
    }

    var progress: GroupProgress { GroupProgress(finished: machine.ended, total: machine.count) }

    /// It is ended from outside.
    mutating func interrupt() {
        isCancelled = true
        _ = machine.interrupt()
    }

    /// What there is for a worker, which has done `last`.
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

    /// Those that rest, when there is nothing more to come.
    mutating func freeWorkers() -> [Queue.Worker] {
        machine.end == nil ? [] : work.takeResting()
    }
}

/// Where a member of a batch stands.
enum BatchMember: Sendable {
    /// What is under way with no task of its own.
    struct Transfer: Sendable {
        let request: MemberRequest
        let run: AwaitedRun
    }

    /// What a task of its own carries.
    enum OwnTask: Sendable {
        /// A request that takes more than one transfer.
        case control(RunControl)
        /// A group, or a request that asks the cache.
        case task(RunningTask)
    }

    case waiting
    case beginning
    /// Answered before its beginning was over.
    case answered(Answer)
    case transfer(Transfer)
    case ownTask(OwnTask)
    case ended(Result<Box, RequestError>)

    /// What it came to; `nil` before its end.
    var result: Result<Box, RequestError>? {
        if case .ended(let result) = self { result } else { nil }
    }

    /// Ends what runs of it. A transfer that ends with the agent is told so by the transport.
    func end(by core: AgentCore, in group: GroupRun) {
        switch self {
        case .transfer(let transfer): if group.ending != .shutdown { core.cancel(transfer.run) }
        case .ownTask(.control(let control)): control.end(group.ending == .shutdown ? .shutdown : .cancelled)
        case .ownTask(.task(let task)): task.cancel()
        case .waiting, .beginning, .answered, .ended: break
        }
    }
}

/// What there is to do for the workers of a batch, and the workers that have nothing to do.
struct BatchWorkQueue {
    /// What a worker does, without waiting for anything.
    enum Work: Sendable {
        case begin(Int)
        /// Make the value of an answer, or find that there is more to do for it.
        case settle(Int, BatchMember.Transfer, Answer)
        /// Take what the task of a member has brought.
        case take(Int, Result<Made, RequestError>)
    }

    /// A worker that rests is given its next work, or `nil` when all is done.
    typealias Worker = UnsafeContinuation<Work?, Never>

    /// In the order it came.
    private var arriving: [Work] = []
    /// What came before that, the next last.
    private var leaving: [Work] = []
    private var resting: [Worker] = []

    mutating func pop() -> Work? {
        if leaving.isEmpty {
            swap(&arriving, &leaving)
            leaving.reverse()
        }
        return leaving.popLast()
    }

    /// The worker that is to be given it; it waits in line when all are busy.
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

/// What a batch knows of its members, and what follows from that.
struct BatchState {
    typealias Queue = BatchWorkQueue

    /// What a hand does that asks.
    enum Next {
        case work(Queue.Work)
        case rest
        /// All is done.
        case leave
    }

    private(set) var machine: BatchMachine
    var members: [BatchMember]
    var work = Queue()
    /// A hand begins a member; another waits with the next, so that they begin in their order.
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

    /// What there is for a hand, which has done `last`.
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
    mutating func freeHands() -> [Queue.Hand] {
        machine.end == nil ? [] : work.takeResting()
    }
}

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

/// Has a token refreshed once for all the runs that failed with it: events of runs in, what to do with them out. Knows
/// neither tokens nor tasks; the owner keeps it behind a lock, and acts after it has left the lock.
///
/// Refreshes are counted in generations, those that fail too. A run is sent with the generation of the moment and
/// brings it back with its 401, so that a 401 that was on its way while the token was refreshed is recognised as old
/// news: it is sent again with the new token, or shares the fault of the refresh that was its own as well.
///
/// A resource may refuse every token. So there is a limit for refreshes that have not been shown to help. A refresh has
/// helped when the run that started it is accepted with the new token. While others accept a new token, a resource that
/// refuses it does not have it replaced.
struct RefreshMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Names a run that may have to wait; one that may wait in several places at once has a name for each.
    typealias RunID = UInt64

    /// What to do with the run that an event is about.
    enum Action: Sendable, Equatable {
        /// Send it, with the token of this generation.
        case send(generation: UInt64)
        /// Keep it, and start the refresh of this number; what ends it tells what becomes of the run.
        case startRefresh(UInt64)
        /// Keep it until the refresh that is under way has ended.
        case wait
        /// Send it once more, with the token of this generation.
        case replay(generation: UInt64)
        /// What it has is its result: its 401, or, of a run that was never sent, the fault of the refresh.
        case giveUp
    }

    /// A run that was kept.
    private struct Waiting {
        /// Its place in the order they came.
        let place: UInt64
        /// It has been sent, and has a 401.
        let wasSent: Bool
    }

    private var waiting: [RunID: Waiting] = [:]
    private var places: UInt64 = 0
    /// The number of the refresh under way; they are counted from 1.
    private var underWay: UInt64?
    /// It replaces a token that is still good: runs go on with that.
    private var isEarly = false
    /// When the last of these was started.
    private var earliest: Instant?
    private var refreshes: UInt64 = 0
    private(set) var isShutDown = false

    /// How many refreshes have ended.
    private(set) var generation: UInt64 = 0
    /// The generation in which the token came that is to be sent now.
    private var renewed: UInt64 = 0
    /// The refresh that it came by.
    private var renewal: UInt64?

    private let limit: RefreshLimit
    /// Refreshes for tokens that were refused, and when they were started: those that have not been shown to help.
    private var unproven: [(number: UInt64, time: Instant)] = []
    /// The same for tokens that had expired: the refreshes that have not brought a token that lasts.
    private var unlasting: [(number: UInt64, time: Instant)] = []
    /// Resources that have refused the token of the moment to a run that was sent again with it.
    private var refusing: Set<Int> = []
    /// When that token was accepted last.
    private var accepted: Instant?

    /// For so long a token that was accepted is taken for good.
    static let trust = Duration.seconds(10)
    /// Between refreshes of a token that is still good.
    static let earlyPause = Duration.seconds(10)
    private static let mostResources = 1000

    init(_ limit: RefreshLimit = RefreshLimit()) { self.limit = limit }

    /// Runs that are kept.
    var waitingCount: Int { waiting.count }

    var isRefreshing: Bool { underWay != nil }

    /// A run is about to be sent for the first time. While a token that was refused is being refreshed it waits: with
    /// the old one it would only come back.
    ///
    /// A run that belongs to the refresh itself never waits for it.
    mutating func starting(_ run: RunID, isRefresh: Bool) -> Action {
        if isShutDown { return .giveUp }
        if isRefresh || underWay == nil || isEarly { return .send(generation: generation) }
        keep(run, wasSent: false)
        return .wait
    }

    /// A run is about to be sent, and there was never a token. Nobody has refused one, so there is no limit for this
    /// refresh.
    mutating func missing(_ run: RunID) -> Action {
        if isShutDown { return .giveUp }
        keep(run, wasSent: true)
        return underWay == nil ? begin() : .wait
    }

    /// A run is about to be sent with a token that has expired, where it `isOver`, or will soon. With the one it waits
    /// for a refresh, with the other it is sent, and the refresh that is to be started runs beside it.
    mutating func expiring(_ run: RunID, isOver: Bool, now: Instant = .now) -> Action {
        if isShutDown { return .giveUp }
        if underWay != nil {
            if !isOver { return .send(generation: generation) }
            keep(run, wasSent: false)
            return .wait
        }
        if isOver {
            // A refresh of a token that has expired is none of a token that was refused, of which 0 may be allowed.
            guard
                Self.isAllowed(
                    &unlasting, refreshes + 1, atMost: max(limit.maxRefreshes, 1), within: limit.window, now)
            else { return .send(generation: generation) }
            keep(run, wasSent: false)
            return begin()
        }
        // Not counted: what could not be had while the token was good may be had when it is not.
        if let earliest, now - earliest < Self.earlyPause { return .send(generation: generation) }
        earliest = now
        return begin(isEarly: true)
    }

    /// The token of a refresh has not expired when it comes. That says nothing of whether servers accept it.
    mutating func lasts(_ number: UInt64) { unlasting.removeAll { $0.number == number } }

    /// Whether there may be another one of those that are counted; then that is, too.
    private static func isAllowed(
        _ counted: inout [(number: UInt64, time: Instant)], _ number: UInt64, atMost most: Int, within time: Duration,
        _ now: Instant
    ) -> Bool {
        counted.removeAll { now - $0.time >= time }
        if counted.count >= most { return false }
        counted.append((number, now))
        return true
    }

    /// A run that was sent in a generation was answered with 401. One that was replayed before is not helped by another
    /// token, and one that belongs to the refresh would wait for itself: both give up. So does one whose token a
    /// refresh that has failed was to replace, and one for which a refresh is not worth while.
    ///
    /// `waits` is false for a run that cannot be sent again: it is not kept, and starts the refresh for those to come.
    mutating func unauthorized(
        _ run: RunID, generation sent: UInt64, wasReplayed: Bool, isRefresh: Bool, by resource: Int = 0,
        waits: Bool = true, now: Instant = .now
    ) -> Action {
        if isShutDown || isRefresh { return .giveUp }
        if wasReplayed {
            if sent >= renewed, refusing.count < Self.mostResources { refusing.insert(resource) }
            return .giveUp
        }
        // The token in use may be good while its successor is fetched: a run that had an older one does not wait.
        if underWay != nil && !(isEarly && sent < renewed) {
            if !waits { return .giveUp }
            keep(run, wasSent: true)
            return .wait
        }
        if sent < renewed { return .replay(generation: generation) }
        if sent < generation { return .giveUp }
        if refusing.contains(resource), let accepted, now - accepted < Self.trust { return .giveUp }
        guard Self.isAllowed(&unproven, refreshes + 1, atMost: limit.maxRefreshes, within: limit.window, now) else {
            return .giveUp
        }
        if waits { keep(run, wasSent: true) }
        return begin()
    }

    private mutating func begin(isEarly: Bool = false) -> Action {
        self.isEarly = isEarly
        refreshes += 1
        underWay = refreshes
        return .startRefresh(refreshes)
    }

    /// A run that was sent in a generation was accepted. `number` is that of the refresh that it has started itself.
    mutating func accepted(generation sent: UInt64, after number: UInt64?, now: Instant = .now) {
        guard sent >= renewed else { return }
        accepted = now
        if let number, number == renewal { unproven.removeAll { $0.number == number } }
    }

    /// The refresh of that number brought a token. Returns all that waited, in the order they came. Of a refresh that
    /// is not under way (any more) nothing comes.
    mutating func refreshed(_ number: UInt64) -> [(run: RunID, action: Action)] {
        guard underWay == number else { return [] }
        underWay = nil
        generation += 1
        (renewed, renewal) = (generation, number)
        (refusing, accepted) = ([], nil)
        let generation = generation
        return release { $0.wasSent ? .replay(generation: generation) : .send(generation: generation) }
    }

    /// The refresh of that number failed: nobody is replayed, and the next 401 of a run that is sent from now on starts
    /// another one at once. So does the next 401 of any run, where the token was still good.
    mutating func refreshFailed(_ number: UInt64) -> [(run: RunID, action: Action)] {
        guard underWay == number else { return [] }
        underWay = nil
        if !isEarly { generation += 1 }
        return release { _ in .giveUp }
    }

    /// A run was cancelled. `true` when it was kept: then nothing comes for it any more. The refresh goes on, also when
    /// nobody waits for it: the next run is glad of the token.
    mutating func cancelled(_ run: RunID) -> Bool {
        waiting.removeValue(forKey: run) != nil
    }

    /// The agent ends: all that wait give up, and so does whoever comes.
    mutating func shutDown() -> [(run: RunID, action: Action)] {
        isShutDown = true
        underWay = nil
        return release { _ in .giveUp }
    }

    private mutating func keep(_ run: RunID, wasSent: Bool) {
        places += 1
        waiting[run] = Waiting(place: places, wasSent: wasSent)
    }

    private mutating func release(_ action: (Waiting) -> Action) -> [(run: RunID, action: Action)] {
        let released = waiting.sorted { $0.value.place < $1.value.place }
        waiting = [:]
        return released.map { (run: $0.key, action: action($0.value)) }
    }
}

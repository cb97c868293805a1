/// The state machine that refreshes a token once for all runs that were refused with it. It takes the events of runs
/// and returns what to do with each run. It knows neither tokens nor tasks. Its owner keeps it behind a lock, and acts
/// after releasing the lock.
///
/// Each refresh, successful or not, begins a new generation. A run is sent with the current generation and reports that
/// number with its 401. The machine thus recognises a 401 that was on its way during a refresh as outdated: the run is
/// sent again with the new token, or shares the failure of the refresh.
///
/// A resource may refuse every token, so the number of refreshes that have not helped is limited. A refresh has helped
/// when the run that started it is accepted with the new token. While other runs are accepted with a token, a resource
/// that refuses it does not start a refresh.
struct RefreshMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Identifies a run that may have to wait. A run that may wait in several places at once has an identifier for
    /// each.
    typealias RunID = UInt64

    /// What to do with the run of an event.
    enum Action: Sendable, Equatable {
        /// Send it with the token of this generation.
        case send(generation: UInt64)
        /// Keep it, and start the refresh with this number. The end of the refresh decides about the run.
        case startRefresh(UInt64)
        /// Keep it until the active refresh has ended.
        case wait
        /// Send it again with the token of this generation.
        case replay(generation: UInt64)
        /// End it with what it has: its 401, or, if it was never sent, the error of the refresh.
        case giveUp
    }

    /// A waiting run.
    private struct Waiting {
        /// Its position in the order of arrival.
        let place: UInt64
        /// Whether it was sent and has a 401.
        let wasSent: Bool
    }

    private var waiting: [RunID: Waiting] = [:]
    private var places: UInt64 = 0
    /// The number of the active refresh, counted from 1.
    private var underWay: UInt64?
    /// Whether the active refresh replaces a token that is still valid. Runs continue with that token.
    private var isEarly = false
    /// When the last such early refresh started.
    private var earliest: Instant?
    private var refreshes: UInt64 = 0
    private(set) var isShutDown = false

    /// The number of refreshes that have ended.
    private(set) var generation: UInt64 = 0
    /// The generation in which the current token arrived.
    private var renewed: UInt64 = 0
    /// The refresh that delivered it.
    private var renewal: UInt64?

    private let limit: RefreshLimit
    /// Refreshes of refused tokens that have not helped, with their start times.
    private var unproven: [(number: UInt64, time: Instant)] = []
    /// Refreshes of expired tokens that have not delivered a valid token, with their start times.
    private var unlasting: [(number: UInt64, time: Instant)] = []
    /// Resources that have refused the current token to a run that was sent again with it.
    private var refusing: Set<Int> = []
    /// When that token was last accepted.
    private var accepted: Instant?

    /// How long an accepted token is considered valid.
    static let trust = Duration.seconds(10)
    /// The minimum time between refreshes of a token that is still valid.
    static let earlyPause = Duration.seconds(10)
    private static let mostResources = 1000

    init(_ limit: RefreshLimit = RefreshLimit()) { self.limit = limit }

    /// The number of waiting runs.
    var waitingCount: Int { waiting.count }

    var isRefreshing: Bool { underWay != nil }

    /// A run is about to be sent for the first time. It waits while a refused token is being refreshed, because it
    /// would be refused with the old one.
    ///
    /// A run that belongs to the refresh itself never waits for it.
    mutating func starting(_ run: RunID, isRefresh: Bool) -> Action {
        if isShutDown { return .giveUp }
        if isRefresh || underWay == nil || isEarly { return .send(generation: generation) }
        keep(run, wasSent: false)
        return .wait
    }

    /// A run is about to be sent, and there has never been a token. Nobody has refused one, so this refresh is not
    /// limited.
    mutating func missing(_ run: RunID) -> Action {
        if isShutDown { return .giveUp }
        keep(run, wasSent: true)
        return underWay == nil ? begin() : .wait
    }

    /// A run is about to be sent with a token that has expired (`isOver`) or is about to. With an expired token it
    /// waits for a refresh; otherwise it is sent, and the refresh runs in parallel.
    mutating func expiring(_ run: RunID, isOver: Bool, now: Instant = .now) -> Action {
        if isShutDown { return .giveUp }
        if underWay != nil {
            if !isOver { return .send(generation: generation) }
            keep(run, wasSent: false)
            return .wait
        }
        if isOver {
            // The limit is for refused tokens, and may be 0. An expired token may be refreshed at least once.
            guard
                Self.isAllowed(
                    &unlasting, refreshes + 1, atMost: max(limit.maxRefreshes, 1), within: limit.window, now)
            else { return .send(generation: generation) }
            keep(run, wasSent: false)
            return begin()
        }
        // Not counted: a refresh that failed while the token was valid may succeed when it has expired.
        if let earliest, now - earliest < Self.earlyPause { return .send(generation: generation) }
        earliest = now
        return begin(isEarly: true)
    }

    /// A refresh has delivered a token that has not expired. Servers may still refuse it.
    mutating func lasts(_ number: UInt64) { unlasting.removeAll { $0.number == number } }

    /// Whether the limit allows another refresh, which is then counted.
    private static func isAllowed(
        _ counted: inout [(number: UInt64, time: Instant)], _ number: UInt64, atMost most: Int, within time: Duration,
        _ now: Instant
    ) -> Bool {
        counted.removeAll { now - $0.time >= time }
        if counted.count >= most { return false }
        counted.append((number, now))
        return true
    }

    /// A run of a generation got a 401. A run that was already sent again is not helped by another token, and a run
    /// that belongs to the refresh would wait for itself: both give up. So does a run whose token a failed refresh was
    /// to replace, and one for which a refresh is not worthwhile.
    ///
    /// `waits` is `false` for a run that cannot be sent again: it is not kept, and starts the refresh for later runs.
    mutating func unauthorized(
        _ run: RunID, generation sent: UInt64, wasReplayed: Bool, isRefresh: Bool, by resource: Int = 0,
        waits: Bool = true, now: Instant = .now
    ) -> Action {
        if isShutDown || isRefresh { return .giveUp }
        if wasReplayed {
            if sent >= renewed, refusing.count < Self.mostResources { refusing.insert(resource) }
            return .giveUp
        }
        // During an early refresh the current token is valid: a run that was sent with an older one does not wait.
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

    /// A run that was sent with a generation was accepted. `number` is the number of the refresh that it has started.
    mutating func accepted(generation sent: UInt64, after number: UInt64?, now: Instant = .now) {
        guard sent >= renewed else { return }
        accepted = now
        if let number, number == renewal { unproven.removeAll { $0.number == number } }
    }

    /// The refresh with this number has delivered a token. Returns all waiting runs in order of arrival. A refresh that
    /// is not active any more has no effect.
    mutating func refreshed(_ number: UInt64) -> [(run: RunID, action: Action)] {
        guard underWay == number else { return [] }
        underWay = nil
        generation += 1
        (renewed, renewal) = (generation, number)
        (refusing, accepted) = ([], nil)
        let generation = generation
        return release { $0.wasSent ? .replay(generation: generation) : .send(generation: generation) }
    }

    /// The refresh with this number has failed: no run is sent again, and the next 401 of a run that is sent from now
    /// on starts another refresh at once. If the token is still valid, so does the next 401 of any run.
    mutating func refreshFailed(_ number: UInt64) -> [(run: RunID, action: Action)] {
        guard underWay == number else { return [] }
        underWay = nil
        if !isEarly { generation += 1 }
        return release { _ in .giveUp }
    }

    /// A run was cancelled. Returns `true` if it was waiting: then nothing follows for it. The refresh continues even
    /// if no run waits for it, because the next run needs the token.
    mutating func cancelled(_ run: RunID) -> Bool {
        waiting.removeValue(forKey: run) != nil
    }

    /// The agent shuts down: all waiting runs give up, and so do later ones.
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

import Dispatch
import FerryCache
import FerryTransport
import Synchronization

/// One of all processes that share a storage fetches what none of them has; the others wait for it.
extension HTTPCacheStage {
    enum Turn {
        /// This run fetches.
        case own
        /// Another one has stored what this one needs.
        case stored
        case brokenOff
    }

    /// Whether it waits for others, where they fetch the same.
    var isLeased: Bool {
        cache.leaseTime != nil && plan.mode.way == .cacheElseNetwork && !sent.isRetry && !directives.noCache
            && !directives.noStore && !directives.onlyIfCached && !cache.unshared.contains(key)
    }

    /// Waits until another run, as a rule in another process, has stored what this one needs, or until it is for this
    /// one to fetch. It is that also where the other takes too long.
    mutating func waitForOther(_ control: RunControl, until deadline: ContinuousClock.Instant?) async -> Turn {
        let end = ContinuousClock.now + min(cache.leaseTime ?? .zero, .seconds(3600))
        var pause = LeasePause()
        while true {
            let granted = await control.wait(until: deadline) { [cache, key] done in
                // Where the run does not wait any more, it must not keep the lease.
                cache.lease(key) { done($0 ? CacheLease(cache, key) : nil) }
            }
            guard let granted: CacheLease? = granted else { return .brokenOff }
            // Whoever had it before may have stored it since this run looked.
            let loaded: StoredEntry?? = await control.wait(until: deadline) { done in
                cache.loadEntry(key) { entry, _ in done(entry) }
            }
            guard let loaded else { return .brokenOff }
            if loaded?.variants?.index(isHead: isHead, variance: { variance($0) }) != nil { return .stored }
            if let granted {
                lease = granted
                return .own
            }
            if ContinuousClock.now >= end { return .own }
            guard await pause.wait(control, until: deadline, by: core) else { return .brokenOff }
        }
    }
}

/// A lease that this process has. It ends with this object: a run that was ended before it was told of its lease keeps
/// nobody waiting.
final class CacheLease: Sendable {
    private let cache: ResponseCache
    private let key: CacheKey
    private let isKept = Atomic<Bool>(false)

    init(_ cache: ResponseCache, _ key: CacheKey) { (self.cache, self.key) = (cache, key) }

    deinit { if !isKept.load(ordering: .acquiring) { cache.endLease(key) } }

    /// It outlives this object: ``ResponseCache/endLease(_:)`` ends it.
    func keep() { isKept.store(true, ordering: .releasing) }
}

/// Between two looks whether another process is done.
struct LeasePause {
    private var milliseconds = 2
    private static let longest = 32

    /// False when the run was ended meanwhile, or its deadline has passed.
    mutating func wait(
        _ control: RunControl, until deadline: ContinuousClock.Instant?, by core: AgentCore
    ) async -> Bool {
        let time = milliseconds
        milliseconds = min(milliseconds * 2, Self.longest)
        let isOver: Bool? = await control.wait(until: deadline) { done in
            core.timerQueue.asyncAfter(deadline: .now() + .milliseconds(time)) { done(true) }
        }
        return isOver != nil
    }
}

/// Some of the keys whose responses could not be stored.
final class UnsharedKeys: Sendable {
    private let keys = Mutex(Set<CacheKey>())
    private static let most = 4096

    func contains(_ key: CacheKey) -> Bool { keys.withLock { $0.contains(key) } }

    func note(_ key: CacheKey) {
        keys.withLock { keys in
            if keys.count >= Self.most { keys.removeAll() }
            keys.insert(key)
        }
    }

    func remove(_ key: CacheKey) { keys.withLock { _ = $0.remove(key) } }
}

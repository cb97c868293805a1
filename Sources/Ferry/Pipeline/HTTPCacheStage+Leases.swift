import Dispatch
import FerryCache
import FerryTransport
import Synchronization

/// Leases: of all processes that share a store, one fetches a missing response, and the others wait for it.
extension HTTPCacheStage {
    enum Turn {
        /// This run must fetch the response.
        case own
        /// Another run has stored the response.
        case stored
        /// This run was ended, or its deadline has passed.
        case brokenOff
    }

    /// Whether this run waits if another process fetches the same response.
    var isLeased: Bool {
        cache.leaseTime != nil && plan.mode.way == .cacheElseNetwork && !sent.isRetry && !directives.noCache
            && !directives.noStore && !directives.onlyIfCached && !cache.unshared.contains(key)
    }

    /// Waits until another run, usually in another process, has stored the response, or until this run has the lease.
    /// If the other run takes longer than the lease time, this run fetches without a lease.
    mutating func waitForOther(_ control: RunControl, until deadline: ContinuousClock.Instant?) async -> Turn {
        let end = ContinuousClock.now + min(cache.leaseTime ?? .zero, .seconds(3600))
        var pause = LeasePause()
        while true {
            let granted = await control.wait(until: deadline) { [cache, key] done in
                // A run that has stopped waiting drops this object, which ends the lease.
                cache.lease(key) { done($0 ? CacheLease(cache, key) : nil) }
            }
            guard let granted: CacheLease? = granted else { return .brokenOff }
            // The previous holder may have stored the response since this run looked.
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

/// A lease that this process holds. It ends with this object, so a run that ends before it learns of its lease does not
/// keep others waiting.
final class CacheLease: Sendable {
    private let cache: ResponseCache
    private let key: CacheKey
    private let isKept = Atomic<Bool>(false)

    init(_ cache: ResponseCache, _ key: CacheKey) { (self.cache, self.key) = (cache, key) }

    deinit { if !isKept.load(ordering: .acquiring) { cache.endLease(key) } }

    /// The lease outlives this object; ``ResponseCache/endLease(_:)`` ends it.
    func keep() { isKept.store(true, ordering: .releasing) }
}

/// The pauses between two checks whether another process is done. Each is twice as long as the one before.
struct LeasePause {
    private var milliseconds = 2
    private static let longest = 32

    /// Returns `false` if the run was ended in the meantime, or if its deadline has passed.
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

/// The keys of responses that could not be stored, so that nobody waits for them. It forgets all of them when it is
/// full.
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

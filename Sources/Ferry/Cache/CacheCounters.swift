import FerryCache
import Synchronization

/// Counts what runs get from a cache. Hits are counted by single atomic words, as they are many.
final class CacheCounters: Sendable {
    private let memoryHits = Atomic<UInt64>(0)
    private let diskHits = Atomic<UInt64>(0)
    private let staleHits = Atomic<UInt64>(0)
    private let rest = Mutex((misses: [CacheMiss: UInt64](), refusals: [CacheRefusal: UInt64]()))

    func hit(fromMemory: Bool, isStale: Bool) {
        if fromMemory { memoryHits.add(1, ordering: .relaxed) } else { diskHits.add(1, ordering: .relaxed) }
        if isStale { staleHits.add(1, ordering: .relaxed) }
    }

    func missed(_ miss: CacheMiss) { rest.withLock { $0.misses[miss, default: 0] += 1 } }

    func refused(_ refusal: CacheRefusal) { rest.withLock { $0.refusals[refusal, default: 0] += 1 } }

    var statistics: CacheStatistics {
        var statistics = CacheStatistics()
        statistics.memoryHits = memoryHits.load(ordering: .relaxed)
        statistics.diskHits = diskHits.load(ordering: .relaxed)
        statistics.staleHits = staleHits.load(ordering: .relaxed)
        (statistics.misses, statistics.refusals) = rest.withLock { $0 }
        return statistics
    }
}

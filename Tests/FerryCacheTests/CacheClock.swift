import FerryCache
import FerrySynchronization

/// A clock that the test advances.
final class CacheClock: Sendable {
    private let time = Atomic<Int64>(currentCacheTime())

    var value: CacheTime { time.load(ordering: .relaxed) }

    func advance(by microseconds: Int64) { time.add(microseconds, ordering: .relaxed) }
}

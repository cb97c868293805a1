public import FerryCache
import Synchronization

/// Stores entries in the memory of this process, for services without a disk.
///
///     configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 64 << 20) }
///
/// It is bounded in bytes; the least recently used entries go first. It ends with its agent. What the agent has at hand
/// within ``CacheConfiguration/memoryBytes`` comes on top: those are answers that are ready to be delivered, and this
/// holds those that are not used so often.
public final class MemoryCacheStorage: CacheStorage {
    private struct State {
        var counts = CacheCounts()
        var entries = 0
        var isClosed = false
    }

    private let front: MemoryFront<CacheEntry>
    /// Held while something changes, and not by those who read.
    private let state = Mutex(State())
    private let maxBytes: Int

    /// What an entry takes beside its record and its key, about.
    private static let overhead = 256

    /// - Parameter maxBytes: Of all entries, with what they take beside their bytes. An entry that is larger is not
    ///   stored.
    public init(maxBytes: Int) {
        self.maxBytes = max(maxBytes, 0)
        front = MemoryFront(maxBytes: self.maxBytes)
    }

    /// The answer comes before this returns, as that of all methods.
    public func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
        if let entry = front.value(for: key) { return answer(.found(entry)) }
        answer(.missing(state.withLock { $0.isClosed } ? .unavailable : .notFound))
    }

    /// Stores an entry. `done` is told `false` of one that is larger than all of the room.
    public func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        let bytes = entry.count + key.material.count + Self.overhead
        let isStored = state.withLock { state in
            if state.isClosed { return false }
            if bytes > maxBytes {
                // What was stored before is older than this.
                forget(key, &state)
                state.counts.refused += 1
                return false
            }
            var isReplaced = false
            front.insert(entry, for: key, bytes: bytes, since: nil) { _ in
                isReplaced = true
                return true
            }
            let entries = front.size.entries
            state.counts.written += 1
            state.counts.evicted += UInt64(state.entries + (isReplaced ? 0 : 1) - entries)
            state.entries = entries
            return true
        }
        done?(isStored)
    }

    /// Removes an entry.
    public func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        state.withLock { forget(key, &$0) }
        done?(true)
    }

    private func forget(_ key: CacheKey, _ state: inout State) {
        front.remove(key)
        state.entries = front.size.entries
    }

    /// Removes all entries.
    public func removeAll(_ done: (@Sendable (Bool) -> Void)?) {
        state.withLock { state in
            front.removeAll()
            state.entries = 0
        }
        done?(true)
    }

    /// Counts the entries, and their bytes with what they take beside them.
    public func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) { answer(front.size) }

    /// What was done since it was made.
    public var counts: CacheCounts { state.withLock { $0.counts } }

    /// Lets go of all entries.
    public func close(_ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.isClosed = true
            front.removeAll()
            state.entries = 0
        }
        done()
    }
}

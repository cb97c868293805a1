public import FerryCache
import FerrySynchronization

/// Stores entries in the memory of this process, for services without a disk.
///
///     configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 64 << 20) }
///
/// Its size is limited; the least recently used entries are evicted first. It ends with its agent. The agent's own
/// memory, ``CacheConfiguration/memoryBytes``, comes on top: it has responses that are ready to be delivered, and this
/// storage has those that are used less often.
public final class MemoryCacheStorage: CacheStorage {
    private struct State {
        var counts = CacheCounts()
        var entries = 0
        var isClosed = false
    }

    private let front: MemoryFront<CacheEntry>
    /// Held during changes, but not during reads.
    private let state = Mutex(State())
    private let maxBytes: Int

    /// The approximate overhead of an entry beyond its record and its key.
    private static let overhead = 256

    /// Creates a storage of at most `maxBytes` bytes, including an overhead of 256 bytes for each entry. A larger entry
    /// is not stored.
    public init(maxBytes: Int) {
        self.maxBytes = max(maxBytes, 0)
        front = MemoryFront(maxBytes: self.maxBytes)
    }

    /// Looks an entry up. Like all methods it calls its closure before it returns.
    public func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
        if let entry = front.value(for: key) { return answer(.found(entry)) }
        answer(.missing(state.withLock { $0.isClosed } ? .unavailable : .notFound))
    }

    /// Stores an entry. `done` gets `false` if the entry is larger than the whole storage.
    public func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        let bytes = entry.count + key.material.count + Self.overhead
        let isStored = state.withLock { state in
            if state.isClosed { return false }
            if bytes > maxBytes {
                // The existing entry is older than this one.
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

    /// Counts the entries and their size, including their overhead.
    public func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) { answer(front.size) }

    /// What has happened since the storage was created.
    public var counts: CacheCounts { state.withLock { $0.counts } }

    /// `false`: it belongs to one agent.
    public var isShared: Bool { false }

    /// Releases all entries.
    public func close(_ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.isClosed = true
            front.removeAll()
            state.entries = 0
        }
        done()
    }
}

/// A bounded memory cache; the least recently used value is evicted first.
///
/// A lookup costs one lock and one hash.
package final class MemoryFront<Value: Sendable>: Sendable {
    private struct Slot {
        var key: CacheKey
        var value: Value?
        var bytes: Int
        /// The neighbours in the order of use: towards the most and the least recently used.
        var newer: Int
        var older: Int
        /// The digest of the key, in a cache that finds entries by it.
        var digest: CacheDigest?
    }

    private struct State {
        var places: [CacheKey: Int] = [:]
        var digests: [CacheDigest: Int] = [:]
        var slots: [Slot] = []
        var free: [Int] = []
        var newest = -1
        var oldest = -1
        var bytes = 0
        /// The numbers of removals of single keys, in groups by the hash of the key.
        var removals = [UInt64](repeating: 0, count: 256)
        /// The number of removals of all keys.
        var sweeps: UInt64 = 0

        static func group(of key: CacheKey) -> Int { key.hash & 255 }

        func removals(of key: CacheKey) -> UInt64 { removals[Self.group(of: key)] &+ sweeps }

        mutating func use(_ place: Int) {
            if place == newest { return }
            unlink(place)
            link(place)
        }

        mutating func add(_ value: Value, _ key: CacheKey, _ digest: CacheDigest?, _ bytes: Int) {
            let slot = Slot(key: key, value: value, bytes: bytes, newer: -1, older: -1, digest: digest)
            let place: Int
            if let reused = free.popLast() {
                place = reused
                slots[place] = slot
            } else {
                place = slots.count
                slots.append(slot)
            }
            places[key] = place
            if let digest { digests[digest] = place }
            self.bytes += bytes
            link(place)
        }

        /// Puts another value in the place of one, which it returns.
        mutating func replace(_ place: Int, by value: Value, _ bytes: Int) -> [Value] {
            use(place)
            self.bytes += bytes - slots[place].bytes
            slots[place].bytes = bytes
            defer { slots[place].value = value }
            return slots[place].value.take().map { [$0] } ?? []
        }

        mutating func remove(_ place: Int) -> [Value] {
            unlink(place)
            places[slots[place].key] = nil
            if let digest = slots[place].digest { digests[digest] = nil }
            bytes -= slots[place].bytes
            free.append(place)
            slots[place].key = CacheKey([])
            return slots[place].value.take().map { [$0] } ?? []
        }

        private mutating func link(_ place: Int) {
            slots[place].newer = -1
            slots[place].older = newest
            if newest >= 0 { slots[newest].newer = place } else { oldest = place }
            newest = place
        }

        private mutating func unlink(_ place: Int) {
            let (newer, older) = (slots[place].newer, slots[place].older)
            if newer >= 0 { slots[newer].older = older } else { newest = older }
            if older >= 0 { slots[older].newer = newer } else { oldest = newer }
        }
    }

    private let state = Mutex(State())
    private let maxBytes: Int
    private let findsByDigest: Bool

    /// A cache that `findsByDigest` can remove a value by the digest of its key.
    package init(maxBytes: Int, findsByDigest: Bool = false) {
        (self.maxBytes, self.findsByDigest) = (maxBytes, findsByDigest)
    }

    /// The value of a key, which is now the most recently used.
    package func value(for key: CacheKey) -> Value? {
        var removals: UInt64 = 0
        return value(for: key, &removals)
    }

    /// The same, and ``removals(of:)`` at this moment.
    @inline(__always)
    package func value(for key: CacheKey, _ removals: inout UInt64) -> Value? {
        state.withLock { state in
            removals = state.removals(of: key)
            guard let place = state.places[key] else { return nil }
            state.use(place)
            return state.slots[place].value
        }
    }

    /// Increases with every removal of this key, of a few others, and of all keys: a value that was read before a
    /// removal may be the removed one.
    package func removals(of key: CacheKey) -> UInt64 { state.withLock { $0.removals(of: key) } }

    /// Stores a value, and replaces an existing one.
    package func insert(_ value: Value, for key: CacheKey, bytes: Int) {
        insert(value, for: key, bytes: bytes, since: nil) { _ in true }
    }

    /// Stores a value if it was not removed since `removals` was read, and an existing value may be replaced.
    package func insert(
        _ value: Value, for key: CacheKey, bytes: Int, since removals: UInt64?, replaces: (Value) -> Bool
    ) {
        // Released values may be deallocated here, and not under the lock.
        var old: [Value] = []
        state.withLock { state in
            if let removals, removals != state.removals(of: key) { return }
            if let place = state.places[key] {
                if let value = state.slots[place].value, !replaces(value) { return }
                if bytes > maxBytes {
                    old = state.remove(place)
                    return
                }
                old = state.replace(place, by: value, bytes)
            } else {
                if bytes > maxBytes { return }
                state.add(value, key, findsByDigest ? key.digest : nil, bytes)
            }
            while state.bytes > maxBytes { old += state.remove(state.oldest) }
        }
        withExtendedLifetime(old) {}
    }

    package func remove(_ key: CacheKey) {
        let old = state.withLock { state in
            state.removals[State.group(of: key)] += 1
            return state.places[key].map { state.remove($0) }
        }
        withExtendedLifetime(old) {}
    }

    /// Removes the value of the key with this digest, which may also be on its way into this cache.
    package func remove(_ digest: CacheDigest) {
        let old = state.withLock { state -> [Value] in
            guard let place = state.digests[digest] else {
                // The group of a key that is not here is unknown.
                state.sweeps += 1
                return []
            }
            state.removals[State.group(of: state.slots[place].key)] += 1
            return state.remove(place)
        }
        withExtendedLifetime(old) {}
    }

    package func removeAll() {
        let old = state.withLock { state in
            let old = state
            state = State()
            (state.removals, state.sweeps) = (old.removals, old.sweeps + 1)
            return old
        }
        withExtendedLifetime(old) {}
    }

    package var size: CacheSize {
        state.withLock { state in
            var size = CacheSize()
            size.entries = state.places.count
            size.bytes = state.bytes
            return size
        }
    }
}

/// The entries that wait to be written. Until then a lookup in the storage would find older ones. Thread-safe.
final class QueuedWrites<Value: Sendable>: Sendable {
    private struct Record {
        /// The digest of the key, once something waits.
        var digest: CacheDigest?
        /// `nil` if it was removed since.
        var newest: Value?
        /// It was forgotten while it waited: until it is written, the storage has an older one.
        var isForgotten = false
        var writes = 0
        /// They may have read the storage before the write.
        var lookups = 0
    }

    private let records = Mutex<[CacheKey: Record]>([:])

    /// An entry is about to be written.
    func begin(_ value: Value, _ key: CacheKey) {
        let digest = key.digest
        records.withLock { records in
            records[key, default: Record()].newest = value
            records[key]?.digest = digest
            records[key]?.isForgotten = false
            records[key]?.writes += 1
        }
    }

    /// A write has ended, successfully or not.
    func end(_ key: CacheKey) { change(key) { $0.writes -= 1 } }

    /// The entry that waits. If there is none, a lookup begins, and the caller must report its end.
    func beginLookup(_ key: CacheKey) -> Value? {
        records.withLock { records in
            if let newest = records[key]?.newest { return newest }
            records[key, default: Record()].lookups += 1
            return nil
        }
    }

    /// A lookup has ended: the entry that was to be written meanwhile, and otherwise whether what the lookup has found
    /// is older than such an entry.
    func endLookup(_ key: CacheKey) -> (newest: Value?, isOutdated: Bool) {
        let record = records.withLock { $0[key] }
        change(key) { $0.lookups -= 1 }
        return (record?.newest, record?.isForgotten ?? false)
    }

    /// The entry was removed.
    func forget(_ key: CacheKey) { records.withLock { $0[key]?.newest = nil } }

    /// Others may have removed the entry of the key with this digest, or all entries. Those that wait are found again
    /// when they are written.
    func forget(_ digest: CacheDigest? = nil) {
        records.withLock { records in
            for key in records.keys where records[key]?.newest != nil {
                if let digest, records[key]?.digest != digest { continue }
                records[key]?.newest = nil
                records[key]?.isForgotten = true
            }
        }
    }

    private func change(_ key: CacheKey, _ body: (inout Record) -> Void) {
        records.withLock { records in
            guard var record = records[key] else { return }
            body(&record)
            records[key] = record.writes == 0 && record.lookups == 0 ? nil : record
        }
    }
}

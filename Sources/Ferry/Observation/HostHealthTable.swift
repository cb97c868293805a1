import FerrySynchronization

/// The health of an agent's hosts, at most ``capacity`` of them. The least recently used ones are removed.
///
/// Results of healthy hosts are by far the most frequent event, and change nothing. ``HealthyHosts`` recognises them
/// without the lock, by a fingerprint of the beginning of the URL.
final class HostHealthTable: Sendable {
    private struct Entry {
        var health: HostHealth
        var lastUse: UInt64
        /// The fingerprints of the host's spellings that ``HealthyHosts`` may have.
        var fingerprints: [UInt64] = []
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var uses: UInt64 = 0
        var listeners = Listeners<HostHealthChange>()
        /// The agent no longer exists.
        var isOver = false
    }

    /// By default three quarters of a power of two, the number that a dictionary holds before it grows.
    let capacity: Int
    private let healthy = HealthyHosts()
    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    init(capacity: Int = 768, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        precondition(capacity > 0, "a table of hosts holds one at least")
        self.capacity = capacity
        self.now = now
    }

    deinit { end() }

    /// The agent no longer exists: all iterations end, also those to come. Somebody may keep the table, as the sequence
    /// of its changes does.
    func end() {
        // Outside the lock, which an iteration that ends takes.
        state.withLock { state in
            state.isOver = true
            defer { state.listeners = Listeners() }
            return state.listeners
        }.finish()
    }

    /// The host of this URL has responded. Nearly free if that changes nothing.
    func succeeded(_ url: String) {
        let fingerprint = healthy.fingerprint(of: url)
        if fingerprint == 0 || healthy.contains(fingerprint) { return }
        record(url, fingerprint)
    }

    /// A run to this URL has failed.
    func failed(_ url: String, _ error: RequestError) {
        switch HostVerdict(error) {
        case .answered: succeeded(url)
        case .failed: record(url, error.code)
        case .nothing: break
        }
    }

    func health(of url: String) -> HostHealth {
        guard let key = HostKey(url: url) else { return .unknown }
        return state.withLock { $0.entries[key.text]?.health ?? .unknown }
    }

    var all: [String: HostHealth] { state.withLock { $0.entries.mapValues(\.health) } }

    var changes: HostHealthChanges { HostHealthChanges(table: self) }

    func listen() -> AsyncStream<HostHealthChange> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1024)) { continuation in
            let number: UInt64? = state.withLock { $0.isOver ? nil : $0.listeners.add(continuation) }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.remove(number) }
            }
        }
    }

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    // MARK: Changes

    private func record(_ url: String, _ fingerprint: UInt64) {
        guard let key = HostKey(url: url) else { return }
        let now = now()
        state.withLock { state in
            update(&state, key) { entry in
                if !entry.fingerprints.contains(fingerprint) {
                    // A host has one or a few spellings; further ones may be an attack, and take the slow path.
                    if entry.fingerprints.count < 8 { entry.fingerprints.append(fingerprint) }
                }
                if entry.fingerprints.contains(fingerprint) { healthy.insert(fingerprint) }
                if entry.health.isReachable { return false }
                entry.health = .reachable(since: now)
                return true
            }
        }
    }

    private func record(_ url: String, _ code: RequestError.Code) {
        guard let key = HostKey(url: url) else { return }
        let now = now()
        state.withLock { state in
            update(&state, key) { entry in
                for fingerprint in entry.fingerprints { healthy.remove(fingerprint) }
                if case .failing(let since, let count, _) = entry.health {
                    entry.health = .failing(since: since, consecutiveFailures: count + 1, lastError: code)
                    return false
                }
                entry.health = .failing(since: now, consecutiveFailures: 1, lastError: code)
                return true
            }
        }
    }

    /// `change` returns whether listeners are notified.
    private func update(_ state: inout State, _ key: HostKey, _ change: (inout Entry) -> Bool) {
        state.uses += 1
        if state.entries[key.text] == nil, state.entries.count >= capacity { makeRoom(&state) }
        var entry = state.entries.removeValue(forKey: key.text) ?? Entry(health: .unknown, lastUse: 0)
        entry.lastUse = state.uses
        let isNews = change(&entry)
        if isNews { state.listeners.send(HostHealthChange(host: key.text, health: entry.health)) }
        state.entries[key.text] = entry
    }

    /// Removes an eighth at once, so that a full table is not searched for every new host.
    private func makeRoom(_ state: inout State) {
        for (key, entry) in state.entries where !entry.fingerprints.allSatisfy({ !healthy.takeUse($0) }) {
            state.entries[key]?.lastUse = state.uses
        }
        let byUse = state.entries.map { (key: $0.key, lastUse: $0.value.lastUse) }.sorted { $0.lastUse < $1.lastUse }
        for (key, _) in byUse.prefix(max(capacity / 8, 1)) {
            for fingerprint in state.entries.removeValue(forKey: key)?.fingerprints ?? [] {
                healthy.remove(fingerprint)
            }
        }
    }
}

/// The fingerprints of the spellings of healthy hosts, and whether each was looked up since the last ``takeUse(_:)``.
///
/// Readers take no lock; writers are serialised by the table's lock. A fingerprint has two possible slots. If neither
/// is free it takes the first; the fingerprint that was there is looked up on the slow path, which puts it back.
struct HealthyHosts: ~Copyable, Sendable {
    private static let count = 2048
    private static let used: UInt64 = 1

    private let places = AtomicArray(count: Self.count)
    /// Random, so that nobody can construct names with the same fingerprint.
    private let seed = UInt64.random(in: .min ... .max)

    /// The fingerprint of scheme, host and port as written; 0 if the text does not begin with them.
    @inline(__always)
    func fingerprint(of url: String) -> UInt64 {
        var url = url
        return url.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let length = HostKey.prefixLength(bytes)
            // The shortest text, `http://h`, has eight bytes.
            if length < 8 { return 0 }
            return max(Self.hash(UnsafeRawBufferPointer(rebasing: bytes[..<length]), seed: seed) & ~Self.used, 2)
        }
    }

    @inline(__always)
    func contains(_ fingerprint: UInt64) -> Bool {
        guard let place = place(of: fingerprint) else { return false }
        // Written once after each check of the table, so that the cache line stays shared among the cores.
        if places[place].load(ordering: .relaxed) & Self.used == 0 {
            _ = places[place].compareExchange(
                expected: fingerprint, desired: fingerprint | Self.used, ordering: .relaxed)
        }
        return true
    }

    func insert(_ fingerprint: UInt64) {
        if place(of: fingerprint) != nil { return }
        let first = Self.first(fingerprint)
        let isTaken = places[first].load(ordering: .relaxed) != 0
        let free = isTaken && places[first ^ 1].load(ordering: .relaxed) == 0 ? first ^ 1 : first
        places[free].store(fingerprint | Self.used, ordering: .releasing)
    }

    func remove(_ fingerprint: UInt64) {
        while let place = place(of: fingerprint) { places[place].store(0, ordering: .releasing) }
    }

    /// Whether it was looked up since the last call.
    func takeUse(_ fingerprint: UInt64) -> Bool {
        guard let place = place(of: fingerprint) else { return false }
        return places[place].compareExchange(
            expected: fingerprint | Self.used, desired: fingerprint, ordering: .relaxed
        ).exchanged
    }

    private static func first(_ fingerprint: UInt64) -> Int { Int(truncatingIfNeeded: fingerprint >> 32) & (count - 1) }

    @inline(__always)
    private func place(of fingerprint: UInt64) -> Int? {
        let first = Self.first(fingerprint)
        if places[first].load(ordering: .acquiring) | Self.used == fingerprint | Self.used { return first }
        if places[first ^ 1].load(ordering: .acquiring) | Self.used == fingerprint | Self.used { return first ^ 1 }
        return nil
    }

    /// At least eight bytes, eight at a time, each folded into the state with a full multiplication.
    @inline(__always)
    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var state = seed ^ UInt64(truncatingIfNeeded: bytes.count)
        var index = 0
        while index + 8 <= bytes.count {
            state = fold(state ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        // The rest is read together with bytes that were already read.
        state = fold(state ^ bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
        return fold(state)
    }

    @inline(__always)
    private static func fold(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }
}

extension HostKey {
    /// The number of bytes before the path: scheme, `://` and authority; 0 if the text does not begin like that.
    static func prefixLength(_ url: UnsafeRawBufferPointer) -> Int {
        var index = 0
        while index < url.count, url[index] != 0x3A {
            if index == 11 { return 0 }
            index += 1
        }
        guard index + 3 < url.count, url[index + 1] == 0x2F, url[index + 2] == 0x2F else { return 0 }
        index += 3
        // Eight bytes at a time, because every result of every run is checked here.
        while index + 8 <= url.count {
            let ends = endMarks(UInt64(littleEndian: url.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            if ends != 0 { return index + ends.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < url.count, endMarks(UInt64(url[index])) & 0x80 == 0 { index += 1 }
        return index
    }

    /// The highest bit of each byte that ends an authority: `/`, `?`, `#` and `\`, which some take for a slash. Correct
    /// up to the first such byte.
    @inline(__always)
    private static func endMarks(_ word: UInt64) -> UInt64 {
        zeroMarks(word ^ 0x2F2F_2F2F_2F2F_2F2F) | zeroMarks(word ^ 0x3F3F_3F3F_3F3F_3F3F)
            | zeroMarks(word ^ 0x2323_2323_2323_2323) | zeroMarks(word ^ 0x5C5C_5C5C_5C5C_5C5C)
    }

    /// The highest bit of each byte that is zero. Correct up to the first such byte.
    @inline(__always)
    static func zeroMarks(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }
}

/// A fixed number of atomic words in one piece of memory, initially zero.
///
/// Sendable because the pointer never changes and the words are atomic.
final class AtomicArray: @unchecked Sendable {
    let count: Int
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    init(count: Int) {
        self.count = count
        words = .allocate(capacity: count)
        for index in 0..<count { (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        words.deinitialize(count: count)
        words.deallocate()
    }

    subscript(index: Int) -> Atomic<UInt64> {
        @inline(__always) _read {
            precondition(index >= 0 && index < count, "no word of this number")
            yield words[index]
        }
    }
}

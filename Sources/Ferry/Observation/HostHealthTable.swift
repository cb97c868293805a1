import Synchronization

/// The health of the hosts an agent talks to, at most ``capacity`` of them; the ones not used for the longest time go.
///
/// Results of healthy hosts are by far the most frequent event, and change nothing. They are therefore answered by
/// ``HealthyHosts``, without the lock, from a fingerprint of the URL's beginning.
final class HostHealthTable: Sendable {
    private struct Entry {
        var health: HostHealth
        var lastUse: UInt64
        /// Of the spellings of this host that ``HealthyHosts`` may know.
        var fingerprints: [UInt64] = []
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var uses: UInt64 = 0
        var listeners = Listeners<HostHealthChange>()
    }

    /// By default three quarters of a power of two: as many as a dictionary holds before it doubles.
    let capacity: Int
    private let healthy = HealthyHosts()
    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    init(capacity: Int = 768, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        precondition(capacity > 0, "a table of hosts holds one at least")
        self.capacity = capacity
        self.now = now
    }

    deinit { state.withLock { $0.listeners.finish() } }

    /// The host of this URL has answered. Next to nothing when that is no news.
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
            let number = state.withLock { $0.listeners.add(continuation) }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.remove(number) }
            }
        }
    }

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    // MARK: News

    private func record(_ url: String, _ fingerprint: UInt64) {
        guard let key = HostKey(url: url) else { return }
        let now = now()
        state.withLock { state in
            update(&state, key) { entry in
                if !entry.fingerprints.contains(fingerprint) {
                    // A host has one spelling, or few: more are somebody's play, and go without the shortcut.
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

    /// `change` says whether the listeners are to hear of it.
    private func update(_ state: inout State, _ key: HostKey, _ change: (inout Entry) -> Bool) {
        state.uses += 1
        if state.entries[key.text] == nil, state.entries.count >= capacity { makeRoom(&state) }
        var entry = state.entries.removeValue(forKey: key.text) ?? Entry(health: .unknown, lastUse: 0)
        entry.lastUse = state.uses
        let isNews = change(&entry)
        if isNews { state.listeners.send(HostHealthChange(host: key.text, health: entry.health)) }
        state.entries[key.text] = entry
    }

    /// Drops an eighth at once, so that a table that is full is not searched for every new host.
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

/// Fingerprints of the spellings of healthy hosts, and whether each was asked for since ``takeUse(_:)`` last looked.
///
/// Readers take no lock; writers are one at a time, under the lock of the table. A fingerprint has two places, and the
/// one that finds neither free takes the first: who was there is asked the long way, and comes back by it.
struct HealthyHosts: ~Copyable, Sendable {
    private static let count = 2048
    private static let used: UInt64 = 1

    private let places = AtomicArray(count: Self.count)
    /// So that nobody can make names that fall on one fingerprint.
    private let seed = UInt64.random(in: .min ... .max)

    /// Of scheme, host and port as they are written; 0 when the text does not begin with them.
    @inline(__always)
    func fingerprint(of url: String) -> UInt64 {
        var url = url
        return url.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let length = HostKey.prefixLength(bytes)
            // The shortest there is, `http://h`, has eight.
            return length < 8 ? 0 : max(hash(UnsafeRawBufferPointer(rebasing: bytes[..<length])) & ~Self.used, 2)
        }
    }

    @inline(__always)
    func contains(_ fingerprint: UInt64) -> Bool {
        guard let place = place(of: fingerprint) else { return false }
        // Written once after each look of the table, so that the line stays shared among the cores.
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

    /// Whether it was asked for since this was last called.
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

    /// Eight bytes at a time, each folded into what came before by a full multiplication.
    @inline(__always)
    private func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = seed ^ UInt64(truncatingIfNeeded: bytes.count)
        var index = 0
        while index + 8 <= bytes.count {
            state = Self.fold(state ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        // What is left is read together with bytes that were read before.
        state = Self.fold(state ^ bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
        return Self.fold(state)
    }

    @inline(__always)
    private static func fold(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }
}

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

    let capacity: Int
    private let healthy = HealthyHosts()
    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    init(capacity: Int = 1024, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
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

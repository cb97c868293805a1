import CAllocations
import FerrySynchronization
import Foundation

/// The results of `lookupStub`, by name. The core's hook has no context, so the table belongs to the process, and every
/// test uses names of its own.
final class LookupStub: Sendable {
    struct Entry {
        var addresses: [String] = []
        var code = EAI_NONAME
        var isHeld = false
        /// The next allocation of the lookup thread fails.
        var isStarved = false
        var lookups = 0
        var first: ContinuousClock.Instant?
        var atWork = 0
        var mostAtWork = 0
    }

    struct State {
        var entries: [String: Entry] = [:]
        var waiters: [(name: String, lookups: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    static let shared = LookupStub()
    let state = Mutex(State())
    /// The number of lookups that are held.
    private let change = NSCondition()

    /// Sets the addresses of `name`, or an error if there are none. With `held`, lookups wait until `release`.
    func set(_ name: String, _ addresses: [String], code: Int32 = EAI_NONAME, isHeld: Bool = false) {
        change.lock()
        state.withLock { state in
            var entry = state.entries[name] ?? Entry()
            entry.addresses = addresses
            entry.code = code
            entry.isHeld = isHeld
            state.entries[name] = entry
        }
        change.broadcast()
        change.unlock()
    }

    /// Makes allocations of the thread that looks this name up fail, or work again.
    func starve(_ name: String, _ isStarved: Bool = true) {
        state.withLock { $0.entries[name]?.isStarved = isStarved }
    }

    func release(_ name: String) {
        change.lock()
        state.withLock { $0.entries[name]?.isHeld = false }
        change.broadcast()
        change.unlock()
    }

    func lookups(_ name: String) -> Int { state.withLock { $0.entries[name]?.lookups ?? 0 } }
    func isAtWork(_ name: String) -> Bool { state.withLock { $0.entries[name]?.atWork ?? 0 > 0 } }
    func mostAtWork(_ name: String) -> Int { state.withLock { $0.entries[name]?.mostAtWork ?? 0 } }
    /// When the first lookup of a name began.
    func firstLookup(_ name: String) -> ContinuousClock.Instant? { state.withLock { $0.entries[name]?.first } }

    /// Waits until a name has been looked up this often.
    func until(_ name: String, lookups: Int) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.entries[name]?.lookups ?? 0 >= lookups { return true }
                state.waiters.append((name, lookups, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    fileprivate func begin(_ name: String) {
        let ready = state.withLock { state in
            var entry = state.entries[name] ?? Entry()
            entry.lookups += 1
            entry.first = entry.first ?? .now
            entry.atWork += 1
            entry.mostAtWork = max(entry.mostAtWork, entry.atWork)
            state.entries[name] = entry
            let ready = state.waiters.filter { $0.name == name && $0.lookups <= entry.lookups }
            state.waiters.removeAll { $0.name == name && $0.lookups <= entry.lookups }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    fileprivate func end(_ name: String) -> Entry {
        // The hook stands for a resolver that hangs: it blocks a lookup thread.
        change.lock()
        while state.withLock({ $0.entries[name]?.isHeld ?? false }) { change.wait() }
        change.unlock()
        return state.withLock { state in
            state.entries[name]?.atWork -= 1
            return state.entries[name] ?? Entry()
        }
    }
}

/// Replaces getaddrinfo().
func lookupStub(
    _ host: UnsafePointer<CChar>, _ out: UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>
) -> Int32 {
    let name = String(cString: host)
    LookupStub.shared.begin(name)
    let entry = LookupStub.shared.end(name)
    guard !entry.addresses.isEmpty else { return entry.code }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICHOST
    var first: UnsafeMutablePointer<addrinfo>?
    for address in entry.addresses.reversed() {
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, nil, &hints, &found) == 0, let found else { continue }
        found.pointee.ai_next = first
        first = found
    }
    out.pointee = first
    if entry.isStarved { allocations_refuse_next() }
    return first == nil ? EAI_NONAME : 0
}

import Dispatch
import FerryCache
import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// The second stage of the pipeline: concurrent runs of the same request share one transfer if the request allows it.
struct SharingStage: Sendable {
    let core: AgentCore
    /// Whose responses these are by the cache policy, and when they have to be on disk.
    let owner: CacheDigest
    let writing: CachePolicy.Writing

    /// Uses the network: alone, or together with runs of the same request. `storedKey` is that of a response which
    /// is stored with a time to live. `sending` becomes that of the transfer which the run joins: the response is as
    /// old as that.
    func answer(
        _ call: Call, _ control: RunControl, storedUnder storedKey: CacheKey?,
        since sending: inout ResponseCache.Sending?
    ) async -> Answer {
        // A run that reports upload progress sends its own body.
        guard call.coalesces, call.meter == nil, let key = key(of: call.request, call, control) else {
            return await Exchange.answer(call, control, by: core)
        }
        let table = core.sharedTransfers
        // A transfer that was sent before a change would return what was there before it.
        let cache = call.http == nil && storedKey == nil ? nil : core.cache
        // Also without a key: the response may be stored for a run that joins it.
        let sent = sending ?? core.cache.map { ResponseCache.Sending($0) }
        let (shared, number, isNew) = table.join(key) {
            SharedTransfer(RunControl(tag: nil, isRefresh: control.isRefresh, isShared: true), since: sent)
        } unless: { active in
            guard let cache, let begun = active.sending else { return false }
            return cache.hasInvalidated(storedKey ?? call.http?.target.key, since: begun.mark)
        }
        sending = shared.sending
        let priority = control.lead { [weak shared, core] in shared?.setPriority($0, of: number, in: core) }
        let ring = (try? call.read())?.transfer.ring
        let own = RequestPriority.allCases.first { $0.ring == ring }
        shared.setPriority(priority ?? own ?? .normal, of: number, in: core)
        if isNew { begin(shared, key, call.ofNobody) }
        let answer: Answer? = await control.wait(until: call.end) { done in shared.wait(number, done) }
        if let answer { return answer }
        table.leave(shared, key, number, in: core)
        let error = control.overdue(url: call.url)
        return .refused(shared.control.wasSent ? error.leavingShared : error)
    }

    /// Starts a transfer in a task of its own, because it outlives the run that started it.
    private func begin(_ shared: SharedTransfer, _ key: SharedTransferKey, _ call: Call) {
        // It carries a run that was admitted, so it needs no admission itself.
        core.enter(shared.control)
        Task {
            let answer = await Exchange.answer(call, shared.control, by: core)
            core.leave(shared.control)
            core.sharedTransfers.complete(shared, key, answer)
        }
    }

    /// `nil` for a request whose transfer cannot be shared.
    private func key<R: Request>(of request: R, _ call: Call, _ control: RunControl) -> SharedTransferKey? {
        // Adapters and providers may add different credentials for each run. Two rules cannot be compared.
        guard core.configuration.adapters.isEmpty, core.configuration.credentialProvider == nil, !core.hasCookies,
            call.settings?.redirectPolicy?.decide == nil, call.settings?.retryPolicy?.decide == nil,
            let snapshot = try? call.read()
        else { return nil }
        let transfer = snapshot.transfer
        var material: [UInt8] = []
        material.appendCounted(transfer.method)
        material.appendCounted(transfer.url)
        shared(transfer.headers, of: snapshot).bytes.withUnsafeBytes { material.appendCounted($0) }
        switch transfer.body {
        case .none: material.append(0)
        case .bytes(let bytes): material.append(CacheDigest(of: bytes))
        case .data(let data): material.append(data.withUnsafeBytes { CacheDigest(of: $0) })
        case .pull: return nil
        }
        let credentials = transfer.credentials.map { "\($0.user)\0\($0.password)" } ?? ""
        material.appendCounted(credentials)
        let proxy = transfer.proxy.map { "\($0.address)\0\($0.user ?? "")\0\($0.password ?? "")" } ?? ""
        material.appendCounted(proxy)
        // With another token the response may be for another user.
        let token = call.takesToken(to: transfer.url) ? core.tokens?.generation : nil
        material.appendCounted("\(transfer.maxBodyBytes) \(transfer.publicOnly) \(token.map(String.init) ?? "none")")
        owner.withBytes { material.appendCounted($0) }
        // A run that waits for the disk must not end with one that does not.
        material.append(writing == .synchronous ? 1 : 0)
        // The HTTP cache (RFC 9111) comes after this stage.
        if let http = call.http { material.appendCounted("\(http.terms.isShared) \(http.mode)") }
        material.appendCounted("\(transfer.acceptedEncodings) \(transfer.isIdempotent) \(control.isRefresh)")
        // Each run has its own deadline; the other timeouts belong to the transfer.
        let timeouts = transfer.timeouts
        material.appendCounted(
            "\(timeouts.connect) \(timeouts.idle) \(timeouts.total) \(timeouts.lowSpeedBytes) \(timeouts.lowSpeedTime)")
        material.appendCounted(call.settings?.redirectPolicy?.words ?? "")
        material.appendCounted(call.settings?.retryPolicy?.words ?? "")
        return SharedTransferKey(type: ObjectIdentifier(R.self), material: material, proxy: call.proxy)
    }

    /// The fields that runs have in common. A key that Ferry has generated for one run does not distinguish it from
    /// another; the transfer has the key of the run that started it.
    private func shared(_ fields: HeaderBlock, of snapshot: RequestSnapshot) -> HeaderBlock {
        guard snapshot.hasGeneratedKey else { return fields }
        var block = HeaderBlock()
        for field in Headers(fields) {
            block.append(field.name, equalNames(field.name, "Idempotency-Key") ? "" : field.value)
        }
        return block
    }
}

extension Call {
    /// The record of a shared transfer: the waiting runs have deadlines, the transfer has none.
    fileprivate var ofNobody: Call {
        var shared = ofPart
        (shared.tag, shared.deadline, shared.start, shared.groupDeadline) = (nil, nil, nil, nil)
        shared.reportsStart = true
        return shared
    }
}

extension RequestError {
    /// The error of a run that leaves a transfer which continues: the progress of the transfer is not known here.
    fileprivate var leavingShared: RequestError {
        var facts = facts
        facts.phase = .waitingHead
        facts.mayHaveBeenProcessed = true
        return RequestError(facts)
    }
}

extension RedirectPolicy {
    /// Everything except the rule.
    fileprivate var words: String {
        "\(limit ?? -1) \(allowsDowngrade) \(sensitiveHeaders) \(keepsMethodOn301And302) \(keepsTraceContext)"
    }
}

extension RetryPolicy {
    /// Everything except the rule.
    fileprivate var words: String {
        """
        \(maxAttempts) \(baseDelay) \(factor) \(maxDelay) \(jitter) \(statuses.sorted()) \(retryableErrors) \
        \(retriesNonIdempotent) \(maxRetryAfter)
        """
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ digest: CacheDigest) {
        append(1)
        digest.withBytes { append(contentsOf: $0) }
    }
}

/// A transfer that several runs share.
final class SharedTransfer: Sendable {
    private struct State {
        var waiters: [Int: @Sendable (Answer) -> Void] = [:]
        /// The priorities of the waiting runs.
        var priorities: [Int: RequestPriority] = [:]
        var next = 0
        var answer: Answer?
    }

    let control: RunControl
    /// Read before it was sent; `nil` in an agent without a cache.
    fileprivate let sending: ResponseCache.Sending?
    private let state = Mutex(State())

    init(_ control: RunControl, since sending: ResponseCache.Sending?) {
        (self.control, self.sending) = (control, sending)
    }

    /// Adds a waiting run. Returns its number, with which it leaves.
    fileprivate func join() -> Int {
        state.withLock { state in
            state.next += 1
            state.waiters[state.next] = { _ in }
            return state.next
        }
    }

    /// Calls back once, when the result is there, or now.
    func wait(_ number: Int, _ done: @escaping @Sendable (Answer) -> Void) {
        let answer = state.withLock { state in
            if state.answer == nil { state.waiters[number] = done }
            return state.answer
        }
        if let answer { done(answer) }
    }

    /// The priority of a waiting run. The transfer has the highest of them.
    fileprivate func setPriority(_ priority: RequestPriority, of number: Int, in core: AgentCore) {
        // Under the lock: if two change their priorities at once, the later one sees both.
        state.withLock { state in
            guard state.answer == nil, state.waiters[number] != nil else { return }
            state.priorities[number] = priority
            let highest = state.priorities.values.max()
            if let highest { control.setPriority(highest, in: core) }
        }
    }

    func complete(_ answer: Answer) {
        let waiters = state.withLock { state in
            state.answer = answer
            defer { (state.waiters, state.priorities) = ([:], [:]) }
            return state.waiters.values
        }
        for waiter in waiters { waiter(answer) }
    }

    fileprivate var waiting: Int { state.withLock { $0.waiters.count } }

    /// Whether no run waits any more, and there is no result yet.
    fileprivate func leave(_ number: Int, in core: AgentCore) -> Bool {
        state.withLock { state in
            guard state.answer == nil, state.waiters.removeValue(forKey: number) != nil else { return false }
            let left = state.priorities.removeValue(forKey: number)
            let highest = state.priorities.values.max()
            if let left, let highest, highest < left { control.setPriority(highest, in: core) }
            return state.waiters.isEmpty
        }
    }
}

/// The active shared transfers.
final class SharedTransferTable: Sendable {
    private let transfers = Mutex([SharedTransferKey: SharedTransfer]())

    /// How many runs wait for one of them.
    var waiting: Int { transfers.withLock { $0.values.reduce(0) { $0 + $1.waiting } } }

    /// The active transfer for a key unless it `isOutdated`, or a new one, and the number of the run that joins it.
    func join(
        _ key: SharedTransferKey, else make: () -> SharedTransfer, unless isOutdated: (SharedTransfer) -> Bool
    ) -> (shared: SharedTransfer, number: Int, isNew: Bool) {
        let made = make()
        return transfers.withLock { transfers in
            // `cancelAll` does not apply to a run that starts after it.
            let found = transfers[key].flatMap { $0.control.end == nil && !isOutdated($0) ? $0 : nil }
            let shared = found ?? made
            transfers[key] = shared
            // Under the lock, so that the transfer does not count as abandoned in the meantime.
            return (shared, shared.join(), found == nil)
        }
    }

    func complete(_ shared: SharedTransfer, _ key: SharedTransferKey, _ answer: Answer) {
        remove(shared, key)
        shared.complete(answer)
    }

    /// A run no longer waits. The last one ends the transfer, and a run that comes later starts another.
    func leave(_ shared: SharedTransfer, _ key: SharedTransferKey, _ number: Int, in core: AgentCore) {
        let isAbandoned = transfers.withLock { transfers in
            guard shared.leave(number, in: core) else { return false }
            if transfers[key] === shared { transfers[key] = nil }
            return true
        }
        if isAbandoned { shared.control.end(.cancelled) }
    }

    private func remove(_ shared: SharedTransfer, _ key: SharedTransferKey) {
        transfers.withLock { if $0[key] === shared { $0[key] = nil } }
    }
}

/// What runs must have in common to share a transfer: everything that is sent, and how the response is handled.
struct SharedTransferKey: Hashable {
    let type: ObjectIdentifier
    let material: [UInt8]
    /// All its rules, because a redirect may lead to a host with another rule.
    let proxy: ProxyConfiguration
}

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
                cache.lease(key, done)
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

/// A lease that a run holds. It ends with this object, so a run that ends before it learns of its lease does not keep
/// others waiting.
final class CacheLease: Sendable {
    private let store: any CacheStorage
    private let key: CacheKey
    private let holder: UInt64
    private let isEnded = Atomic<Bool>(false)

    private static let holders = Atomic<UInt64>(0)

    /// A number that no other lease of this process has. A lease that has expired must not end a later one.
    static func nextHolder() -> UInt64 { holders.wrappingAdd(1, ordering: .relaxed).newValue }

    init(_ store: any CacheStorage, _ key: CacheKey, _ holder: UInt64) {
        (self.store, self.key, self.holder) = (store, key, holder)
    }

    deinit { end() }

    /// The entry was passed to the storage, or could not be fetched.
    func end() { if !isEnded.exchange(true, ordering: .acquiringAndReleasing) { store.endLease(key, of: holder) } }
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
    private let keys = Mutex(Set<CacheDigest>())
    private static let most = 4096

    func contains(_ key: CacheKey) -> Bool { keys.withLock { $0.contains(key.digest) } }

    func note(_ key: CacheKey) {
        keys.withLock { keys in
            if keys.count >= Self.most { keys.removeAll() }
            keys.insert(key.digest)
        }
    }

    func remove(_ key: CacheKey) { keys.withLock { _ = $0.remove(key.digest) } }
}

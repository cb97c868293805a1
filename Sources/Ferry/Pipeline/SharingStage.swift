import FerryCache
import FerryTransport
import FoundationEssentials
import Synchronization

/// The second stage of the pipeline: runs of the same request that are under way at once share one transfer, where the
/// request says so.
struct SharingStage: Sendable {
    let core: AgentCore

    /// Over the network: alone, or with others who want the same.
    func answer(_ call: Call, _ control: RunControl) async -> Answer {
        // A run whose body is counted sends it.
        guard call.request.coalesces, call.meter == nil, let key = key(of: call.request, call, control) else {
            return await Exchange.answer(call, control, by: core)
        }
        let table = core.sharedTransfers
        let (shared, number, isNew) = table.join(key) {
            SharedTransfer(RunControl(tag: nil, isRefresh: control.isRefresh))
        }
        let priority = control.lead { [weak shared, core] in shared?.setPriority($0, of: number, in: core) }
        shared.setPriority(priority ?? call.request.priority, of: number, in: core)
        if isNew { begin(shared, key, call.ofNobody) }
        let answer: Answer? = await control.wait(until: call.end) { done in shared.wait(number, done) }
        if let answer { return answer }
        table.leave(shared, key, number)
        let error = control.overdue(url: call.url)
        return .refused(shared.control.wasSent ? error.leavingShared : error)
    }

    /// In a task of its own, as it outlives the run that began it.
    private func begin(_ shared: SharedTransfer, _ key: SharedTransferKey, _ call: Call) {
        // It carries a run that was let in, and so needs not be let in itself.
        core.enter(shared.control)
        Task {
            let answer = await Exchange.answer(call, shared.control, by: core)
            core.leave(shared.control)
            core.sharedTransfers.complete(shared, key, answer)
        }
    }

    /// `nil` for a request whose transfer cannot be shared.
    private func key<R: Request>(of request: R, _ call: Call, _ control: RunControl) -> SharedTransferKey? {
        // They may give each run credentials of its own. And of two rules nobody knows whether they are the same.
        guard core.configuration.adapters.isEmpty, core.configuration.credentialProvider == nil, !core.hasCookies,
            request.redirectPolicy?.decide == nil, request.retryPolicy?.decide == nil,
            let transfer = try? call.read().transfer
        else { return nil }
        var material: [UInt8] = []
        material.appendCounted(transfer.method)
        material.appendCounted(transfer.url)
        shared(transfer.headers, of: request).bytes.withUnsafeBytes { material.appendCounted($0) }
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
        // With another token it may be for somebody else.
        let token = call.takesToken(to: transfer.url) ? core.tokens?.generation : nil
        material.appendCounted("\(transfer.maxBodyBytes) \(transfer.publicOnly) \(token.map(String.init) ?? "none")")
        let policy = core.cachePolicy(of: request)
        (policy.terms?.sensitiveData ?? policy.http?.sensitiveData ?? .none).withBytes { material.appendCounted($0) }
        // By RFC 9111 the cache answers behind this stage.
        if let http = call.http { material.appendCounted("\(http.terms.isShared) \(http.mode)") }
        material.appendCounted("\(transfer.acceptedEncodings) \(transfer.isIdempotent) \(control.isRefresh)")
        // Each run has a deadline of its own; the rest is the transfer's.
        let timeouts = transfer.timeouts
        material.appendCounted(
            "\(timeouts.connect) \(timeouts.idle) \(timeouts.total) \(timeouts.lowSpeedBytes) \(timeouts.lowSpeedTime)")
        material.appendCounted(request.redirectPolicy?.words ?? "")
        material.appendCounted(request.retryPolicy?.words ?? "")
        return SharedTransferKey(type: ObjectIdentifier(R.self), material: material, proxy: call.proxy)
    }

    /// The fields that runs have in common: a key that Ferry has made for one run does not tell it from another. The
    /// transfer has that of the run that began it.
    private func shared<R: Request>(_ fields: HeaderBlock, of request: R) -> HeaderBlock {
        guard request.idempotencyKey == .automatic, request.prebuiltRequest == nil,
            !request.headers.contains("Idempotency-Key")
        else { return fields }
        var block = HeaderBlock()
        for field in Headers(fields) {
            block.append(field.name, equalNames(field.name, "Idempotency-Key") ? "" : field.value)
        }
        return block
    }
}

extension Call {
    /// For a transfer that is nobody's own: the runs that wait for it have their deadlines, it has none.
    fileprivate var ofNobody: Call {
        var shared = ofPart
        (shared.tag, shared.deadline, shared.start, shared.groupDeadline) = (nil, nil, nil, nil)
        shared.reportsStart = true
        return shared
    }
}

extension RequestError {
    /// Of a run that leaves a transfer, which goes on: how far that has come is not known here.
    fileprivate var leavingShared: RequestError {
        var facts = facts
        facts.phase = .waitingHead
        facts.mayHaveBeenProcessed = true
        return RequestError(facts)
    }
}

extension RedirectPolicy {
    /// All of it but the rule.
    fileprivate var words: String {
        "\(limit ?? -1) \(allowsDowngrade) \(sensitiveHeaders) \(keepsMethodOn301And302) \(keepsTraceContext)"
    }
}

extension RetryPolicy {
    /// All of it but the rule.
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
        /// Of those who wait.
        var priorities: [Int: RequestPriority] = [:]
        var next = 0
        var answer: Answer?
    }

    let control: RunControl
    private let state = Mutex(State())

    init(_ control: RunControl) { self.control = control }

    /// One more that waits. Its number, by which it leaves.
    fileprivate func join() -> Int {
        state.withLock { state in
            state.next += 1
            state.waiters[state.next] = { _ in }
            return state.next
        }
    }

    /// Calls back once, when the answer is there, or now.
    func wait(_ number: Int, _ done: @escaping @Sendable (Answer) -> Void) {
        let answer = state.withLock { state in
            if state.answer == nil { state.waiters[number] = done }
            return state.answer
        }
        if let answer { done(answer) }
    }

    /// The priority of one who waits: the highest of them is the transfer's.
    fileprivate func setPriority(_ priority: RequestPriority, of number: Int, in core: AgentCore) {
        // Under the lock: of two that change theirs at once, the later sees both.
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

    /// Whether nobody waits any more for an answer that is not there.
    fileprivate func leave(_ number: Int) -> Bool {
        state.withLock { state in
            guard state.answer == nil, state.waiters.removeValue(forKey: number) != nil else { return false }
            state.priorities[number] = nil
            return state.waiters.isEmpty
        }
    }
}

/// The shared transfers under way.
final class SharedTransferTable: Sendable {
    private let transfers = Mutex([SharedTransferKey: SharedTransfer]())

    /// The transfer under way for a key, or a new one, and the number of the run that joins it.
    func join(
        _ key: SharedTransferKey, else make: () -> SharedTransfer
    ) -> (shared: SharedTransfer, number: Int, isNew: Bool) {
        let made = make()
        return transfers.withLock { transfers in
            // A cancel of all runs was not meant for one that comes after it.
            let found = transfers[key].flatMap { $0.control.end == nil ? $0 : nil }
            let shared = found ?? made
            transfers[key] = shared
            // Under the lock, so that nobody takes it for abandoned meanwhile.
            return (shared, shared.join(), found == nil)
        }
    }

    func complete(_ shared: SharedTransfer, _ key: SharedTransferKey, _ answer: Answer) {
        remove(shared, key)
        shared.complete(answer)
    }

    /// Somebody does not want the answer any more; the last of them ends the transfer, and who comes later begins
    /// another.
    func leave(_ shared: SharedTransfer, _ key: SharedTransferKey, _ number: Int) {
        let isAbandoned = transfers.withLock { transfers in
            guard shared.leave(number) else { return false }
            if transfers[key] === shared { transfers[key] = nil }
            return true
        }
        if isAbandoned { shared.control.end(.cancelled) }
    }

    private func remove(_ shared: SharedTransfer, _ key: SharedTransferKey) {
        transfers.withLock { if $0[key] === shared { $0[key] = nil } }
    }
}

/// What runs must have in common to share a transfer: all that is sent, and how the answer is to be taken.
struct SharedTransferKey: Hashable {
    let type: ObjectIdentifier
    let material: [UInt8]
    /// All its rules: a redirect may lead to a host that another rule is for.
    let proxy: ProxyConfiguration
}

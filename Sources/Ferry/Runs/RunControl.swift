import FerryTransport
import Synchronization

/// A run that takes more than one plain transfer: it may wait, ask code of the application's, and send again. This is
/// the handle by which it is ended from outside, whatever it is doing.
final class RunControl: Sendable {
    /// Why it was ended before its time.
    enum End: Sendable {
        case cancelled
        case shutdown
    }

    private struct State {
        var end: End?
        /// What it did was broken off, and it was not taken up again yet.
        var isBroken = false
        var goesOn: Bool { end == nil && !isBroken }
        /// Ends what it is doing now.
        var interrupt: (@Sendable (End) -> Void)?
        /// The place among those that wait, where it was changed after the start.
        var priority: RequestPriority?
        /// The transfer it is carrying now.
        var run: Run?
        /// Those that do a part of its work: they end with it, and have its priority.
        var children: [RunControl] = []
        /// Told of its priority: the transfer that it shares.
        var follower: (@Sendable (RequestPriority) -> Void)?
    }

    private let state = Mutex(State())
    private let isSent = Atomic<Bool>(false)
    let tag: String?
    /// The batch or chain whose member it is.
    let group: GroupRun?
    /// Of these, the one whose priority it has.
    let inherited: GroupRun?
    /// It belongs to a refresh of the token, and must not wait for that.
    let isRefresh: Bool

    /// To be made in the task that starts the run, whose refresh it may belong to.
    init(tag: String?, of core: AgentCore, in group: GroupRun? = nil, inherits: Bool = false) {
        self.tag = tag
        self.group = group
        inherited = inherits ? group : nil
        isRefresh = core.isRefreshing
    }

    /// Of a part of a run, or of a transfer that it shares: it belongs to the refresh if the run does. The task that
    /// makes it need not be the one that started the run.
    init(tag: String?, isRefresh: Bool) {
        self.tag = tag
        (group, inherited) = (nil, nil)
        self.isRefresh = isRefresh
    }

    /// Why it was ended; `nil` while nobody has.
    var end: End? { state.withLock { $0.end } }

    /// Ends it: what it does now is broken off, and nothing new is begun. The first reason counts. Any thread.
    func end(_ reason: End) {
        let (interrupt, first, children) = state.withLock { state in
            let first = state.end ?? reason
            state.end = first
            defer { state.children = [] }
            return (state.interrupt.take(), first, state.children)
        }
        interrupt?(first)
        for child in children { child.end(first) }
    }

    /// Has what it does now broken off, as if it were cancelled, and nothing new begun until it is taken up again. Any
    /// thread.
    func breakOff() {
        let interrupt = state.withLock { state in
            state.isBroken = true
            return state.interrupt.take()
        }
        interrupt?(.cancelled)
    }

    /// It may begin something again, unless it was ended.
    func takeUp() { state.withLock { $0.isBroken = false } }

    private var goesOn: Bool { state.withLock { $0.goesOn } }

    /// Has another one end when this does, with the priority that this has.
    func adopt(_ child: RunControl) {
        let (end, priority) = state.withLock { state in
            if state.end == nil { state.children.append(child) }
            return (state.end, state.priority)
        }
        // A change that came meanwhile has told it already.
        if let priority { child.state.withLock { if $0.priority == nil { $0.priority = priority } } }
        if let end { child.end(end) }
    }

    /// Says how to break off what begins now. False, and nothing kept, when the run has ended or was broken off.
    private func begin(_ interrupt: @escaping @Sendable (End) -> Void) -> Bool {
        state.withLock { state in
            if !state.goesOn { return false }
            state.interrupt = interrupt
            return true
        }
    }

    private func done() {
        state.withLock { state in
            state.interrupt = nil
            state.run = nil
        }
    }

    /// Changes the place among those that wait, of this transfer and all that follow. Any thread.
    func setPriority(_ priority: RequestPriority, in core: AgentCore) {
        let (run, children, follower) = state.withLock { state in
            state.priority = priority
            return (state.run, state.children, state.follower)
        }
        if let id = run?.id, id != 0 { core.transport.setRing(priority.ring, of: id) }
        for child in children { child.setPriority(priority, in: core) }
        follower?(priority)
    }

    /// Has another one told of its priority from now on. Gives the priority that it has now, where one was set.
    func lead(_ follower: @escaping @Sendable (RequestPriority) -> Void) -> RequestPriority? {
        let priority = state.withLock { state in
            state.follower = follower
            return state.priority
        }
        return priority ?? inherited?.priority
    }

    /// Whether a transfer of it has left the queue; known only where the transfer reports its start.
    var wasSent: Bool { isSent.load(ordering: .acquiring) }

    func noteStart() { isSent.store(true, ordering: .releasing) }

    /// Hands a transfer over. False when the run has ended.
    private func hand(_ run: Run, _ built: inout BuiltRequest, to core: AgentCore) -> Bool {
        // The transport is shut down next, and tells the run of that.
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else { return false }
        let priority = state.withLock { state in
            state.run = run
            return state.priority ?? inherited?.priority
        }
        if let priority { built.transfer.ring = priority.ring }
        core.start(run, built, goesOn: true)
        // It may have been changed before the transfer had an id.
        if let now = state.withLock({ $0.priority }), now != priority { setPriority(now, in: core) }
        return true
    }

    // MARK: What it does

    /// Carries one transfer.
    func carry(_ built: consuming BuiltRequest, by core: AgentCore) async -> Answer {
        let run = AwaitedRun(url: built.transfer.url, tag: tag, starting: self)
        guard hand(run, &built, to: core) else { return .refused(error(url: run.url)) }
        let answer = await run.answer()
        done()
        core.rests()
        return answer
    }

    /// Carries one transfer up to the head of its answer.
    func carry(_ built: consuming BuiltRequest, streamedBy carrier: any BodyCarrier, by core: AgentCore) async -> Answer
    {
        let run = carrier.run(for: &built, tag: tag, core: core)
        guard hand(run, &built, to: core) else { return .refused(error(url: run.url)) }
        let head = await run.head()
        done()
        core.rests()
        return head
    }

    /// Waits for the body whose head it carried; it is begun by `start`. `nil` when the run has ended before.
    func carryBody(of run: StreamRun, by core: AgentCore, _ start: () -> Void) async -> Answer? {
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else { return nil }
        core.goes()
        start()
        let answer = await run.wholeAnswer()
        done()
        core.rests()
        return answer
    }

    /// Reads something of the body whose head it carried. `nil` when it was ended before that, or meanwhile: then the
    /// body is broken off, too.
    func read<Value>(of run: StreamRun, by core: AgentCore, _ reading: () async -> Value) async -> Value? {
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else {
            core.cancel(run)
            return nil
        }
        let value = await reading()
        done()
        return goesOn ? value : nil
    }

    /// Lets time pass. False when it was ended meanwhile.
    func pause(_ duration: Duration) async -> Bool {
        if duration <= .zero { return goesOn }
        // The clock traps when it cannot express the time.
        let sleep = Task { try? await Task.sleep(for: min(duration, .seconds(1_000_000_000))) }
        guard begin({ _ in sleep.cancel() }) else {
            sleep.cancel()
            return false
        }
        await sleep.value
        done()
        return goesOn
    }

    /// Waits for what `start` says is here, once. `nil` when the run was ended before that, or the deadline has
    /// passed.
    func wait<Value: Sendable>(
        until deadline: ContinuousClock.Instant?, for start: (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value? {
        let value = OneShot<Value?>()
        guard begin({ _ in value.finish(nil) }) else { return nil }
        start { value.finish($0) }
        let clock = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                value.finish(nil)
            }
        }
        let found = await value.value()
        done()
        clock?.cancel()
        return found
    }

    /// Runs code of the application's. When the run is ended, or its deadline passes, it is cancelled and not
    /// waited for: code that does not look at its cancellation cannot hold up the result.
    func ask<Value: Sendable>(
        _ url: String, until deadline: ContinuousClock.Instant?,
        _ question: @escaping @Sendable () async throws -> Value
    ) async throws(RequestError) -> Value {
        let first = OneShot<Result<Value, any Error>>()
        let task = Task {
            let result: Result<Value, any Error>
            do { result = .success(try await question()) } catch { result = .failure(error) }
            first.finish(result)
        }
        let clock = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                first.finish(.failure(RequestError.deadlinePassed(url: url)))
            }
        }
        if !begin({ _ in first.finish(.failure(CancellationError())) }) { first.finish(.failure(CancellationError())) }
        let result = await first.value()
        done()
        task.cancel()
        clock?.cancel()
        do {
            return try result.get()
        } catch {
            throw end.map { _ in self.error(url: url) } ?? .thrown(error, url: url)
        }
    }

    /// What it ends with when it was ended.
    func error(url: String) -> RequestError {
        RequestError(failure, url: url)
    }

    /// Likewise, of a run whose head had come: what is known of it stays true. Its attempts are counted unless
    /// somebody else does.
    func error(behind head: Response, countsAttempts: Bool) -> RequestError {
        let error = RequestError(failure, of: head.result, url: head.url, origin: head.origin)
        return countsAttempts ? error : error.uncounted
    }

    /// What it ends with that was ended, or else has waited until its deadline.
    func overdue(url: String) -> RequestError { end == nil ? .deadlinePassed(url: url) : error(url: url) }

    private var failure: TransferFailure { TransferFailure(end == .shutdown ? .shutdown : .cancelled) }
}

extension RequestError {
    /// The run has taken as long as it may, and is not sent, or not sent again.
    static func deadlinePassed(url: String) -> RequestError {
        RequestError(TransferFailure(.timeout, .timeoutDeadline), url: url)
    }

    /// The same, as code of the application's made it.
    var ofApplication: RequestError {
        var facts = facts
        facts.isOfApplication = true
        return RequestError(facts)
    }

    /// What code of the application's threw before there was an answer.
    static func thrown(_ error: any Error, url: String) -> RequestError {
        switch error {
        case let error as RequestError: error.ofApplication
        case is CancellationError:
            RequestError(preparing: .cancelled, message: "the run was cancelled", url: url, cause: error)
        default:
            RequestError(preparing: .applicationError, message: "\(type(of: error)) was thrown", url: url, cause: error)
        }
    }
}

/// A value that comes once, for one task that waits for it. Of several the first counts.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case finished(Value)
        case over
    }

    private let state = Mutex(State.open)

    /// The value is here. Any thread, any number of times.
    func finish(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .finished(value)
                return nil
            case .awaited(let waiter):
                state = .over
                return waiter
            case .finished, .over: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    /// Waits for it, once.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if case .finished(let value) = state {
                    state = .over
                    return value
                }
                state = .awaited(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

import FerrySynchronization
import FerryTransport

/// Controls a run that takes more than one plain transfer: it may wait, call code of the application, and send again.
/// With this handle it can be ended from outside, whatever it is doing.
final class RunControl: Sendable {
    /// Why the run was ended early.
    enum End: Sendable {
        case cancelled
        case shutdown
    }

    private struct State {
        var end: End?
        /// Its current work was broken off, and it has not resumed yet.
        var isBroken = false
        var goesOn: Bool { end == nil && !isBroken }
        /// Ends its current work.
        var interrupt: (@Sendable (End) -> Void)?
        /// The priority, if it was changed after the start.
        var priority: RequestPriority?
        /// Its current transfer.
        var run: Run?
        /// Controls of parts of its work: they end with it, and have its priority.
        var children: [RunControl] = []
        /// Receives its priority: the transfer that it shares.
        var follower: (@Sendable (RequestPriority) -> Void)?
    }

    private let state = Mutex(State())
    private let isSent = Atomic<Bool>(false)
    let tag: String?
    /// The batch or chain that the run is a member of.
    let group: GroupRun?
    /// The group whose priority it inherits.
    let inherited: GroupRun?
    /// Whether it belongs to a token refresh, and so must not wait for that.
    let isRefresh: Bool
    /// Whether it carries runs that have been admitted themselves, and so does not count as one.
    let isShared: Bool

    /// Create it in the task that starts the run, because the run may belong to a refresh of that task.
    init(tag: String?, of core: AgentCore, in group: GroupRun? = nil, inherits: Bool = false) {
        self.tag = tag
        self.group = group
        inherited = inherits ? group : nil
        isRefresh = core.isRefreshing
        isShared = false
    }

    /// Creates the control of a part of a run or of a shared transfer, which belongs to the refresh if the run does.
    /// The task that creates it may be another one than the one that started the run.
    init(tag: String?, isRefresh: Bool, isShared: Bool = false) {
        self.tag = tag
        (group, inherited) = (nil, nil)
        (self.isRefresh, self.isShared) = (isRefresh, isShared)
    }

    /// Why it was ended; `nil` if it was not.
    var end: End? { state.withLock { $0.end } }

    /// Ends the run: breaks off its current work, and starts nothing new. The first reason counts. Any thread.
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

    /// Breaks off its current work as if it were cancelled, and starts nothing new until it resumes. Any thread.
    func breakOff() {
        let interrupt = state.withLock { state in
            state.isBroken = true
            return state.interrupt.take()
        }
        interrupt?(.cancelled)
    }

    /// Lets it start work again, unless it was ended.
    func takeUp() { state.withLock { $0.isBroken = false } }

    private var goesOn: Bool { state.withLock { $0.goesOn } }

    /// Makes another control end together with this one, and have its priority.
    func adopt(_ child: RunControl) {
        let (end, priority) = state.withLock { state in
            if state.end == nil { state.children.append(child) }
            return (state.end, state.priority)
        }
        // A priority change in the meantime has already reached it.
        if let priority { child.state.withLock { if $0.priority == nil { $0.priority = priority } } }
        if let end { child.end(end) }
    }

    /// Registers how to break off the work that starts now. Returns `false`, and registers nothing, if the run has
    /// ended or was broken off.
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

    /// Changes the priority of the current transfer and of all that follow. Any thread.
    func setPriority(_ priority: RequestPriority, in core: AgentCore) {
        let (run, children, follower) = state.withLock { state in
            state.priority = priority
            return (state.run, state.children, state.follower)
        }
        if let id = run?.id, id != 0 { core.transport.setRing(priority.ring, of: id) }
        for child in children { child.setPriority(priority, in: core) }
        follower?(priority)
    }

    /// Registers a follower of its priority. Returns the current priority, if one was set.
    func lead(_ follower: @escaping @Sendable (RequestPriority) -> Void) -> RequestPriority? {
        let priority = state.withLock { state in
            state.follower = follower
            return state.priority
        }
        return priority ?? inherited?.priority
    }

    /// Whether one of its transfers has left the queue. Known only if the transfer reports its start.
    var wasSent: Bool { isSent.load(ordering: .acquiring) }

    func noteStart() { isSent.store(true, ordering: .releasing) }

    /// Submits a transfer. Returns `false` if the run has ended.
    private func hand(_ run: Run, _ built: inout BuiltRequest, to core: AgentCore) -> Bool {
        // The transport is about to be shut down, and will end the run.
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else { return false }
        let priority = state.withLock { state in
            state.run = run
            return state.priority ?? inherited?.priority
        }
        if let priority { built.transfer.ring = priority.ring }
        core.start(run, built, goesOn: true)
        // The priority may have changed before the transfer had an id.
        if let now = state.withLock({ $0.priority }), now != priority { setPriority(now, in: core) }
        return true
    }

    // MARK: Work

    /// Carries one transfer.
    func carry(_ built: consuming BuiltRequest, by core: AgentCore) async -> Answer {
        let run = AwaitedRun(url: built.transfer.url, tag: tag, starting: self)
        guard hand(run, &built, to: core) else { return .refused(error(url: run.url)) }
        let answer = await run.answer()
        done()
        core.rests()
        return answer
    }

    /// Carries one transfer until the head of its response.
    func carry(_ built: consuming BuiltRequest, streamedBy carrier: any BodyCarrier, by core: AgentCore) async -> Answer
    {
        let run = carrier.run(for: &built, tag: tag, core: core)
        guard hand(run, &built, to: core) else { return .refused(error(url: run.url)) }
        let head = await run.head()
        done()
        core.rests()
        return head
    }

    /// Waits for the body of the response whose head it carried; `start` starts reading it. `nil` if the run has
    /// already ended.
    func carryBody(of run: StreamRun, by core: AgentCore, _ start: () -> Void) async -> Answer? {
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else { return nil }
        core.goes()
        start()
        let answer = await run.wholeAnswer()
        done()
        core.rests()
        return answer
    }

    /// Reads from the body of the response whose head it carried. `nil` if the run was ended before or during the read;
    /// then the body is broken off, too.
    func read<Value>(of run: StreamRun, by core: AgentCore, _ reading: () async -> Value) async -> Value? {
        guard begin({ if $0 == .cancelled { core.cancel(run) } }) else {
            core.cancel(run)
            return nil
        }
        let value = await reading()
        done()
        return goesOn ? value : nil
    }

    /// Waits for some time. Returns `false` if it was ended in the meantime.
    func pause(_ duration: Duration) async -> Bool {
        if duration <= .zero { return goesOn }
        // The clock traps if it cannot represent the time.
        let sleep = Task { try? await Task.sleep(for: min(duration, .seconds(1_000_000_000))) }
        guard begin({ _ in sleep.cancel() }) else {
            sleep.cancel()
            return false
        }
        await sleep.value
        done()
        return goesOn
    }

    /// Waits, once, for the value that `start` announces. `nil` if the run was ended before that, or the deadline has
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

    /// Waits, once, for a value that comes in any case. If the run is ended or broken off, or its deadline passes, it
    /// waits only for `patience` more, and then returns `nil`.
    func wait<Value: Sendable>(
        for value: OneShot<Value?>, until deadline: ContinuousClock.Instant?, patience: Duration
    ) async -> Value? {
        let goesOn = begin { _ in
            Task {
                try await Task.sleep(for: patience)
                value.finish(nil)
            }
        }
        let clock = (goesOn ? deadline : .now).map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                try await Task.sleep(for: patience)
                value.finish(nil)
            }
        }
        let found = await value.value()
        done()
        clock?.cancel()
        return found
    }

    /// Calls code of the application. If the run is ended or its deadline passes, the code is cancelled and not waited
    /// for, so that code that ignores cancellation cannot delay the result.
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

    /// The error with which it ends if it was ended.
    func error(url: String) -> RequestError {
        RequestError(failure, url: url)
    }

    /// The same for a run whose response head had arrived; it keeps what is known of the run. The attempts are added
    /// unless another place does so.
    func error(behind head: Response, countsAttempts: Bool) -> RequestError {
        let error = RequestError(failure, of: head.result, url: head.url, origin: head.origin)
        return countsAttempts ? error : error.uncounted
    }

    /// The error of a run that was ended, or has waited until its deadline.
    func overdue(url: String) -> RequestError { end == nil ? .deadlinePassed(url: url) : error(url: url) }

    /// The same for a run whose response head had arrived.
    func overdue(behind head: Response, countsAttempts: Bool) -> RequestError {
        if end != nil { return error(behind: head, countsAttempts: countsAttempts) }
        let failure = TransferFailure(.timeout, .timeoutDeadline)
        let error = RequestError(failure, of: head.result, url: head.url, origin: head.origin)
        return countsAttempts ? error : error.uncounted
    }

    private var failure: TransferFailure { TransferFailure(end == .shutdown ? .shutdown : .cancelled) }
}

extension RequestError {
    /// The run has reached its deadline, and is not sent, or not sent again.
    static func deadlinePassed(url: String) -> RequestError {
        RequestError(TransferFailure(.timeout, .timeoutDeadline), url: url)
    }

    /// The same error, marked as made by code of the application.
    var ofApplication: RequestError {
        var facts = facts
        facts.isOfApplication = true
        return RequestError(facts)
    }

    /// The error that code of the application threw before there was a response.
    static func thrown(_ error: any Error, url: String) -> RequestError {
        switch error {
        case let error as RequestError: error.ofApplication
        case is CancellationError:
            RequestError(preparing: .cancelled, message: "the run was cancelled", url: url, cause: error)
        default:
            RequestError(
                preparing: .applicationError, message: "the application's code threw \(type(of: error))", url: url,
                cause: error)
        }
    }
}

/// A value that arrives once, for one waiting task. Of several values the first counts.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case finished(Value)
        case over
    }

    private let state = Mutex(State.open)

    /// Provides the value. Any thread, any number of times.
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

    /// Waits for the value, once.
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

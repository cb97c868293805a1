import Dispatch
import FerrySynchronization
import FerryTransport

/// The record of one run, which the table holds under the run's id.
///
/// Sendable because everything in it is atomic or constant. State that subclasses add is behind a lock, or its comment
/// says why that is not necessary.
class Run: @unchecked Sendable {
    /// 0 before the run is submitted, 1 if it was cancelled before that, afterwards its id.
    private let link = Atomic<UInt64>(0)
    let url: String
    let tag: String?
    /// `nil` if there are no observers, and after the result of a run with callbacks was delivered.
    final fileprivate(set) var watch: RunWatch?
    /// Provides a body that is read as it is sent. Like the meter, it is set before the transport knows the run.
    final var source: (any BodySource)?
    /// `nil` if nothing counts its body.
    final var meter: UploadMeter?
    /// Receives informational responses. Like the meter, it is set before the transport knows the run.
    final var informed: RunWatch?
    /// The batch or chain that the run is a member of. Like the next property, it is set before the transport knows the
    /// run.
    final var group: GroupRun?
    /// Whether the group determines the priority.
    final var inheritsPriority = false
    /// The group whose priority it inherits.
    final var inherited: GroupRun? { inheritsPriority ? group : nil }
    /// Whether the result goes to a callback on a queue.
    let goesByQueues: Bool

    /// The number of the last `cancelAll` when the run entered the table; `nil` before. Later calls apply to the run. A
    /// task that continues the run uses the number to find out about calls that could not find the run. Set under the
    /// core's lock before the transport knows the run.
    final var lastCancel: UInt32?

    /// The run has a response that may not be its last, and its task has not looked at it yet. Set under the core's
    /// lock before the run gets its response, and then used only by that task.
    final var isUndecided = false

    private static let cancelledBefore: UInt64 = 1

    init(url: String, tag: String?, watch: RunWatch?, goesByQueues: Bool) {
        self.goesByQueues = goesByQueues
        self.url = url
        self.tag = tag
        self.watch = watch
    }

    /// Its id in the transport; 0 before it is submitted.
    final var id: TransferID {
        let id = link.load(ordering: .acquiring)
        return id == Self.cancelledBefore ? 0 : id
    }

    /// The run was submitted. Returns `false` if it was cancelled in the meantime: then the transport still has to be
    /// told.
    final func handedOver(as id: TransferID) -> Bool {
        link.compareExchange(expected: 0, desired: id, ordering: .acquiringAndReleasing).exchanged
    }

    /// Whether the run keeps its slot in the table although it has its result: until a queue delivers it. From here on
    /// this is its id, even if the result arrived before the run was submitted.
    final func keepsPlace(as id: TransferID) -> Bool { goesByQueues && (self.id == id || handedOver(as: id)) }

    /// Notes a cancel, and returns the id to cancel in the transport, if the transport already knows it.
    final func noteCancel() -> TransferID? {
        let (exchanged, id) = link.compareExchange(
            expected: 0, desired: Self.cancelledBefore, ordering: .acquiringAndReleasing)
        return exchanged || id == Self.cancelledBefore ? nil : id
    }

    /// Whether its task may continue after a response, while nothing else in the agent represents it.
    var mayGoOn: Bool { false }

    /// The transfer has left the queue.
    func started() {}

    /// The head of a streamed response has arrived.
    func received(head: TransferResult) {}

    /// The streamed response is complete, but the request is still being sent.
    func answered(_ result: TransferResult) {}

    /// A piece of the streamed body has arrived. It is valid until this returns.
    func received(chunk: UnsafeRawBufferPointer) -> TransferFlow { .proceed }

    /// This many bytes of the body are in the file.
    func written(_ count: UInt64) {}

    /// Receives the one result. A run with callbacks adds itself to `turn`, whose members are processed together.
    func answer(_ answer: Answer, into turn: inout [CallbackRun]) {}

    /// Called by `cancelAll`; returns the id to cancel in the transport.
    func cancelled() -> TransferID? { noteCancel() }
}

extension Run {
    /// [callback queue] The result was delivered: releases what the handle of an ended run must not retain.
    func forget() {
        watch = nil
        informed = nil
        source = nil
    }

    /// Takes over the body source of its attempt.
    func prepare(_ built: borrowing BuiltRequest) {
        source = built.source
        if let watch = built.informed { informed = watch }
        if let meter = built.meter { self.meter = meter }
        meter?.begin(total: built.transfer.body.length, hasBody: !built.transfer.body.isNone)
    }

    /// [event loop] Provides the next bytes of the body.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        guard let source else { return .failed }
        let fill = source.fill(space)
        meter?.count(fill)
        return fill
    }

    /// [event loop] Writes the trailer fields. Returns their size; `nil` if there is not enough room.
    func fillTrailers(_ space: UnsafeMutableRawBufferPointer) -> Int? {
        guard let trailers = source?.trailers, trailers.count <= space.count else { return nil }
        space.copyBytes(from: trailers)
        return trailers.count
    }

    /// [event loop] An informational response has arrived.
    func received(informational head: UnsafeRawBufferPointer) {
        guard let informed, let response = InformationalResponse.all(in: TransferResult.lines(head)).first else {
            return
        }
        informed.received(response)
    }

    /// [event loop] The transfer has ended, and no further bytes of the body are needed. Returns the result of the run.
    func closeBody(_ result: TransferResult) -> Answer {
        if let meter { meter.end(sent: result.bodyBytesSent) }
        guard let source else { return .result(result) }
        source.close()
        guard let failure = result.failure, failure.code == .uploadSource,
            let cause = source.failure(sending: failure.errno)
        else { return .result(result) }
        return .refused(RequestError(failure, of: result, url: url).explained(by: cause))
    }
}

/// The run behind a ``RequestTask``: that of a request, a batch or a chain.
protocol RunHandle: AnyObject, Sendable {
    var number: UInt64 { get }
    var state: RunState { get }
    var tag: String? { get }
    var metrics: RequestMetrics { get }
    /// `nil` for a request.
    var progress: GroupProgress? { get }
    var isFromCache: Bool { get }
    /// Counts the body of a request.
    var meter: UploadMeter? { get }
    func cancel()
    func setPriority(_ priority: RequestPriority)
}

extension CallbackRun: RunHandle {
    var progress: GroupProgress? { nil }
}

/// Receives the result of a run that no task awaits by itself.
struct AnswerReader: Sendable {
    let object: any AnswerReading
    let place: Int
}

protocol AnswerReading: AnyObject, Sendable {
    /// The one result of the run at this index. Any thread.
    func answered(_ place: Int, _ answer: Answer)
}

/// A run that a task awaits, or a reader of many. It is submitted before the task waits, so its result may come first.
///
/// Sendable like every ``Run``: what it adds is constant or behind its lock.
final class AwaitedRun: Run, @unchecked Sendable {
    private enum Slot {
        case empty
        case reader(AnswerReader)
        case waiter(UnsafeContinuation<Answer, Never>)
        case answer(Answer)
        case done
    }

    private let slot: Mutex<Slot>
    /// `nil` if it starts with a plain transfer.
    let control: RunControl?
    /// The servers at the start of the run; `nil` for a part of a run.
    let servers: Servers?
    /// The request as it was then; also `nil` if it cannot be sent.
    let snapshot: RequestSnapshot?
    /// Notified of the start of its transfer.
    private let starting: RunControl?
    /// When the run began, as computed from a first response that may not be its last, because the task of the run may
    /// look at it much later. `nil` for any other, which needs no clock. Written before the lock passes it on.
    private(set) var since: ContinuousClock.Instant?

    init(
        url: String, tag: String?, watch: RunWatch? = nil, control: RunControl? = nil, servers: Servers? = nil,
        snapshot: RequestSnapshot? = nil, reader: AnswerReader? = nil, starting: RunControl? = nil
    ) {
        self.starting = starting
        slot = Mutex(reader.map { .reader($0) } ?? .empty)
        self.control = control
        self.servers = servers
        self.snapshot = snapshot
        super.init(url: url, tag: tag, watch: watch, goesByQueues: false)
    }

    override func started() { starting?.noteStart() }

    /// A part of a run is represented by that run, and a member of a group by its group.
    override var mayGoOn: Bool { servers != nil && group == nil }

    /// Waits for the result. The caller is responsible for ending it early.
    nonisolated(nonsending) func answer() async -> Answer {
        defer { slot.orderAfterResume() }
        return await withUnsafeContinuation { wait(by: $0) }
    }

    private func wait(by continuation: UnsafeContinuation<Answer, Never>) {
        let answer: Answer? = slot.withLock { slot in
            if case .answer(let answer) = slot {
                slot = .done
                return answer
            }
            slot = .waiter(continuation)
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }

    override func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        // A 304 usually ends its run, and there are many.
        if servers != nil, case .result(let result) = answer,
            !result.succeeded || (result.status >= 300 && result.status != 304)
        {
            since = .now - .microseconds(result.metrics.total)
        }
        let before = slot.withLock { slot in
            let before = slot
            if case .empty = before { slot = .answer(answer) } else { slot = .done }
            return before
        }
        switch before {
        case .empty: break
        case .waiter(let waiter): waiter.resume(returning: answer)
        case .reader(let reader): reader.object.answered(reader.place, answer)
        case .answer, .done: preconditionFailure("a run was answered twice")
        }
    }
}

// MARK: Life

extension AwaitedRun {
    // Never inlined, and without a snapshot among its arguments: variables and large arguments would live in the frame
    // of `send`, in each of the waiting tasks.

    /// Starts a run of a request: reads it, notifies the observers, and submits its plain transfer.
    @inline(never)
    static func start<R: Request>(
        _ request: R, progress: (queue: DispatchQueue, report: UploadMeter.Report)? = nil,
        in group: GroupRun? = nil, by core: AgentCore
    ) -> AwaitedRun {
        start(request, nil, progress: progress, in: group, answering: nil, by: core)
    }

    /// Does the same, but reads the request only if it has no snapshot.
    static func start<R: Request>(
        _ request: R, _ snapshot: RequestSnapshot?,
        progress: (queue: DispatchQueue, report: UploadMeter.Report)? = nil,
        in group: GroupRun? = nil, answering reader: AnswerReader?, by core: AgentCore
    ) -> AwaitedRun {
        var built: BuiltRequest
        let servers = core.builder.servers
        var needsExchange = Exchange.isNeeded(for: request, by: core)
        do throws(RequestError) {
            built = try core.builder.networkRequest(
                request, snapshot, at: servers, opensBody: !needsExchange, defersFiles: group != nil)
            // Its body has files: a member runs in a task of Ferry, which must not wait for a file system.
            if built.pulled != nil && built.source == nil { needsExchange = true }
        } catch {
            let run = AwaitedRun(
                url: error.url, tag: request.tag,
                watch: RunWatch.begin(request, url: error.url, in: group, by: core), reader: reader)
            core.refuse(run, error)
            return run
        }
        let (url, own) = (built.transfer.url, request.observers)
        let inherits = group != nil && built.transfer.ring == RequestPriority.normal.ring
        let control = needsExchange ? RunControl(tag: request.tag, of: core, in: group, inherits: inherits) : nil
        let run = AwaitedRun(
            url: url, tag: request.tag,
            watch: core.isWatched(own)
                ? RunWatch.begin(request, own, method: built.transfer.method, url: url, in: group, by: core) : nil,
            control: control, servers: servers, snapshot: snapshot ?? RequestSnapshot(built), reader: reader)
        if let progress { run.meter = UploadMeter(of: built.transfer, on: progress.queue, progress.report) }
        if let refusal = group.flatMap({ $0.admit(run, &built.transfer) }) {
            core.refuse(run, refusal)
        } else if withUnsafeCurrentTask(body: { $0?.isCancelled ?? false }) {
            core.refuse(run, .cancelled(nil, url: run.url))
        } else if let control {
            core.handOver(run, to: control)
        } else {
            if run.watch != nil || built.trace != nil { built.beginSpan(of: run.watch) }
            built.inform(run.watch)
            built.transfer.passesLimits = core.tokens != nil && core.isRefreshing
            core.start(run, built, mayBeRetried: core.builder.mayRetry(built.settings))
        }
        return run
    }

    /// Waits for the result, and is cancelled with the task.
    nonisolated(nonsending) func answer(by core: AgentCore) async -> Answer {
        await withTaskCancellationHandler {
            await answer()
        } onCancel: {
            core.cancel(self)
        }
    }

    /// Whether this result ends the run. If not, the task has to continue.
    func isEnd(_ answer: Answer, by core: AgentCore) -> Bool {
        guard isSettled(answer, by: core) else { return false }
        core.settled(self)
        return true
    }

    func isSettled(_ answer: Answer, by core: AgentCore) -> Bool {
        Exchange.isSettled(answer, snapshot?.settings, by: core)
    }

    @concurrent
    func goOn<R: Request>(_ request: R, after answer: Answer, by core: AgentCore) async -> Answer {
        let control = control(by: core)
        return await withTaskCancellationHandler {
            await goOn(request, control, after: answer, by: core)
        } onCancel: {
            // A run that ends with the agent is told so when it goes on.
            if group?.ending != .shutdown { control.end(.cancelled) }
        }
    }

    /// The control of the run if it continues. Call it in the task that started the run, or in a task created there.
    func control(by core: AgentCore) -> RunControl {
        control ?? RunControl(tag: tag, of: core, in: group, inherits: inheritsPriority)
    }

    /// Continues to the last response. The caller is responsible for ending it early.
    func goOn<R: Request>(
        _ request: R, _ control: RunControl, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        core.enter(control, from: self)
        let call = Call(
            request, snapshot.map { .success($0) }, at: servers ?? core.builder.servers, url: url, watch: watch,
            of: self, isPlain: self.control == nil, meter: meter, in: group, since: since, by: core)
        return await Exchange.run(call, control, after: answer, by: core)
    }

    /// Ends the run in the caller's task.
    @inline(never)
    func conclude<R: Request>(
        _ request: R, _ answer: Answer, by core: AgentCore
    ) throws(RequestError) -> Reply<R.Value> {
        try RunEnd.conclude(request, answer, url: url, watch, by: core)
    }

    @concurrent
    func concludeOffActor<R: Request>(
        _ request: R, _ answer: Answer, by core: AgentCore
    ) async throws(RequestError) -> Reply<R.Value> {
        try conclude(request, answer, by: core)
    }
}

import Dispatch
import FerryTransport
import Synchronization

/// The record of one run: what the table holds under its id, one object for each.
///
/// Sendable because all of it is atomic or constant; what subclasses add is behind a lock, or says why not.
class Run: @unchecked Sendable {
    /// 0 before it is handed over, 1 when it was cancelled before that, afterwards its id.
    private let link = Atomic<UInt64>(0)
    let url: String
    let tag: String?
    /// `nil` when nobody observes it.
    let watch: RunWatch?
    /// Gives out the body, where it is pulled. Set, like the meter, before the transport knows of the run.
    final var source: (any BodySource)?
    /// `nil` when nothing counts its body.
    final var meter: UploadMeter?
    /// Told of informational responses. Set likewise.
    final var informed: RunWatch?
    /// The batch or chain it is a member of. Set, like the next, before the transport knows of the run.
    final var group: GroupRun?
    /// Whether its place among those that wait is the group's to say.
    final var inheritsPriority = false
    /// Whether its answer goes by queues to a callback.
    let goesByQueues: Bool

    /// The number of the last cancel of all runs when it came into the table: those that follow mean it. A task that
    /// goes on with it asks by this whether there were any, as they may not have found it any more. `nil` before. Set
    /// under the lock of the core, and before the transport knows of the run.
    final var lastCancel: UInt32?

    /// It has an answer that may not be its last, and its task has yet to look at it. Set under the lock of the core,
    /// before the run is answered, and from then on touched by that task only.
    final var isUndecided = false

    private static let cancelledBefore: UInt64 = 1

    init(url: String, tag: String?, watch: RunWatch?, goesByQueues: Bool) {
        self.goesByQueues = goesByQueues
        self.url = url
        self.tag = tag
        self.watch = watch
    }

    /// Its id in the transport; 0 before it was handed over.
    final var id: TransferID {
        let id = link.load(ordering: .acquiring)
        return id == Self.cancelledBefore ? 0 : id
    }

    #if FERRY_TSAN
    /// The sanitizer does not see that a continuation that is resumed before it is awaited orders the two threads.
    private let published = Atomic<Int>(0)
    final func publish() { published.store(1, ordering: .releasing) }
    final func observe() { _ = published.load(ordering: .acquiring) }
    #endif

    /// It has been handed over. False when it was cancelled meanwhile: then the cancel has yet to be passed on.
    final func handedOver(as id: TransferID) -> Bool {
        link.compareExchange(expected: 0, desired: id, ordering: .acquiringAndReleasing).exchanged
    }

    /// Whether its place in the table is kept, now that it is answered: until it is delivered by a queue. From here on
    /// its id is this one, also where its answer came before it was handed over.
    final func keepsPlace(as id: TransferID) -> Bool { goesByQueues && (self.id == id || handedOver(as: id)) }

    /// Notes a cancel; returns the id that the transport must be told, if it knows it already.
    final func noteCancel() -> TransferID? {
        let (exchanged, id) = link.compareExchange(
            expected: 0, desired: Self.cancelledBefore, ordering: .acquiringAndReleasing)
        return exchanged || id == Self.cancelledBefore ? nil : id
    }

    /// Whether its task may go on behind an answer, with nothing else in the agent to show for it meanwhile.
    var mayGoOn: Bool { false }

    /// The transfer has left the queue.
    func started() {}

    /// The head of an answer that is streamed.
    func received(head: TransferResult) {}

    /// The answer that is streamed is whole, and the request is still being sent.
    func answered(_ result: TransferResult) {}

    /// A piece of its body, which lives until this returns.
    func received(chunk: UnsafeRawBufferPointer) -> TransferFlow { .proceed }

    /// So many bytes of its body are in its file.
    func written(_ count: UInt64) {}

    /// The one answer. A run that goes on by queues adds itself to `turn`, whose members go on together.
    func answer(_ answer: Answer, into turn: inout [CallbackRun]) {}

    /// Asked to end by the agent (`cancelAll`); returns the id that the transport must be told.
    func cancelled() -> TransferID? { noteCancel() }
}

extension Run {
    /// Takes over what belongs to the body of its attempt.
    func prepare(_ built: borrowing BuiltRequest) {
        source = built.source
        if let watch = built.informed { informed = watch }
        if let meter = built.meter { self.meter = meter }
        meter?.begin(total: built.transfer.body.length, hasBody: !built.transfer.body.isNone)
    }

    /// [loop's thread] The next bytes of its body.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        guard let source else { return .failed }
        let fill = source.fill(space)
        meter?.count(fill)
        return fill
    }

    /// [loop's thread] The fields behind its body.
    func fillTrailers(_ space: UnsafeMutableRawBufferPointer) -> Int? {
        guard let trailers = source?.trailers, trailers.count <= space.count else { return nil }
        space.copyBytes(from: trailers)
        return trailers.count
    }

    /// [loop's thread] An informational response came.
    func received(informational head: UnsafeRawBufferPointer) {
        guard let informed, let response = InformationalResponse.all(in: TransferResult.lines(head)).first else {
            return
        }
        informed.received(response)
    }

    /// [loop's thread] Its transfer has ended, and no byte of its body is wanted any more. Gives what the run is
    /// answered with.
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

/// What a ``RequestTask`` names: the run of a request, of a batch or of a chain.
protocol RunHandle: AnyObject, Sendable {
    var number: UInt64 { get }
    var state: RunState { get }
    var tag: String? { get }
    var metrics: RequestMetrics { get }
    /// `nil` of a request.
    var progress: GroupProgress? { get }
    var isFromCache: Bool { get }
    /// Of the body of a request.
    var meter: UploadMeter? { get }
    func cancel()
    func setPriority(_ priority: RequestPriority)
}

extension CallbackRun: RunHandle {
    var progress: GroupProgress? { nil }
}

/// What a run's answer goes to that no task waits for by itself.
struct AnswerReader: Sendable {
    let object: any AnswerReading
    let place: Int
}

protocol AnswerReading: AnyObject, Sendable {
    /// The one answer of the run of this place. Any thread.
    func answered(_ place: Int, _ answer: Answer)
}

/// A run that a task waits for, or a reader of many. It is handed over before the task waits, so its answer may come
/// first.
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
    /// `nil` when it begins with a plain transfer.
    let control: RunControl?
    /// What it began with; `nil` of a part of a run.
    let servers: Servers?
    /// Its request as it was then; `nil` where it cannot be sent, too.
    let snapshot: RequestSnapshot?
    /// Told of the start of its transfer.
    private let starting: RunControl?

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

    /// A part of a run has that, and a member of a group its group.
    override var mayGoOn: Bool { servers != nil && group == nil }

    /// Waits for its answer. To end it early is the caller's to see to.
    nonisolated(nonsending) func answer() async -> Answer {
        #if FERRY_TSAN
        defer { observe() }
        #endif
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
        #if FERRY_TSAN
        publish()
        #endif
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

// MARK: Its life

extension AwaitedRun {
    // Never inlined: the variables would live in the frame of `send`, in each of the tasks that wait.

    /// Begins a run of a request: reads it, tells the observers, and hands its plain transfer over.
    @inline(never)
    static func start<R: Request>(
        _ request: R, progress: (queue: DispatchQueue, report: UploadMeter.Report)? = nil,
        in group: GroupRun? = nil, answering reader: AnswerReader? = nil, by core: AgentCore
    ) -> AwaitedRun {
        var built: BuiltRequest
        let servers = core.builder.servers
        let needsExchange = Exchange.isNeeded(for: request, by: core)
        do throws(RequestError) {
            built = try core.builder.build(request, at: servers, opensBody: !needsExchange)
        } catch {
            let run = AwaitedRun(
                url: error.url, tag: request.tag,
                watch: RunWatch.begin(request, url: error.url, in: group, by: core), reader: reader)
            core.refuse(run, error)
            return run
        }
        let url = built.transfer.url
        let control =
            needsExchange
            ? RunControl(tag: request.tag, of: core, in: group, inherits: group != nil && request.inheritsPriority)
            : nil
        let run = AwaitedRun(
            url: url, tag: request.tag, watch: RunWatch.begin(request, url: url, in: group, by: core),
            control: control, servers: servers, snapshot: RequestSnapshot(built), reader: reader)
        if let progress { run.meter = UploadMeter(of: built.transfer, on: progress.queue, progress.report) }
        if let refusal = group.flatMap({ $0.admit(run, &built.transfer, of: request) }) {
            core.refuse(run, refusal)
        } else if withUnsafeCurrentTask(body: { $0?.isCancelled ?? false }) {
            core.refuse(run, .cancelled(nil, url: run.url))
        } else if let control {
            core.handOver(run, to: control)
        } else {
            built.beginSpan(of: run.watch)
            built.inform(run.watch)
            core.start(run, built, mayBeRetried: core.builder.mayRetry(request))
        }
        return run
    }

    /// Waits for its answer, and is cancelled with the task.
    nonisolated(nonsending) func answer(by core: AgentCore) async -> Answer {
        await withTaskCancellationHandler {
            await answer()
        } onCancel: {
            core.cancel(self)
        }
    }

    /// Whether this is its end. If not, the task has to go on.
    func isEnd<R: Request>(_ answer: Answer, of request: R, by core: AgentCore) -> Bool {
        guard Exchange.isSettled(answer, of: request, by: core) else { return false }
        core.settled(self)
        return true
    }

    @concurrent
    func goOn<R: Request>(_ request: R, after answer: Answer, by core: AgentCore) async -> Answer {
        let control = control(by: core)
        return await withTaskCancellationHandler {
            await goOn(request, control, after: answer, by: core)
        } onCancel: {
            control.end(.cancelled)
        }
    }

    /// What it is steered by when it goes on. To be asked for in the task that started the run, or in one made there.
    func control(by core: AgentCore) -> RunControl {
        control ?? RunControl(tag: tag, of: core, in: group, inherits: inheritsPriority)
    }

    /// Goes on to the last answer. To end it early is the caller's to see to.
    func goOn<R: Request>(
        _ request: R, _ control: RunControl, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        core.enter(control, from: self)
        let call = Call(
            request, snapshot.map { .success($0) }, at: servers ?? core.builder.servers, url: url, watch: watch,
            meter: meter, in: group, by: core)
        return await Exchange.run(call, control, after: answer, by: core)
    }

    /// The end of the run in the caller's task.
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

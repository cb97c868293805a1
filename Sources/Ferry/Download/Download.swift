import FerryTransport
import Synchronization

/// One download: the part that is there, what is known of it, and who works at it. Its answers come by way of a run
/// like any other run's; what they mean is decided by `DownloadMachine`.
final class Download: Sendable {
    struct State {
        /// `nil` before it was opened.
        var part: PartFile?
        var place: DownloadPlan.Place?
        /// Of the file as it is loaded now.
        var metadata: DownloadMetadata
        /// Whether another run can go on with the part.
        var isKept = false
        /// Whether the part is for this run to throw away: it is of its making, or nobody could go on with it. One that
        /// is of another request, or that was not asked for, stays until there is something to put in its place.
        var isOurs = false
        /// Whether the part was empty when it was opened, with no metadata beside it, and nothing was written since.
        var isFresh = false
        /// Whether the metadata stands on the disk. That of a small file is written down only when its run fails:
        /// should its process die, the file is loaded anew.
        var isNoted = false
        /// Bytes from the start on, of a part that is not in segments.
        var received: Int64 = 0
        var resumedFrom: Int64 = 0
        /// One that is in its place already, and that the server may still have.
        var completed: CompletedFile?
        var isUnchanged = false
        var isComplete = false
        var hasRestarted = false
        /// Segments that somebody works at, or has.
        var claimed: Set<Int> = []
        var helpers: DownloadHelpers?
        /// Theirs, known before the first of them begins: it may fail at once.
        var helperControls: [RunControl] = []
        /// What one of them has failed with, the first.
        var helperFault: RequestError?
        /// The disk has not taken in time what was written: a write is still under way when the run has ended. It holds
        /// the lock until it returns, so that no other run writes to the part meanwhile.
        var isStuck = false
        /// One of all that load segments was given bytes of another file.
        var isOutdated = false
        /// Whose bodies go to the part now.
        var pouring: [StreamRun] = []
        var isPaused = false
        /// Those of them that were paused: their servers may have hung up on them.
        var paused: [StreamRun] = []
    }

    let plan: DownloadPlan
    let meter: DownloadMeter
    let disk = DiskQueue()
    let state: Mutex<State>

    init(_ plan: DownloadPlan, _ meter: DownloadMeter) {
        self.plan = plan
        self.meter = meter
        state = Mutex(State(metadata: DownloadMetadata(url: plan.url)))
    }

    /// From the first answer to the file in its place. The answer is the last one, for what was measured.
    func carry(
        _ call: Call, _ control: RunControl, after first: Answer, by core: AgentCore
    ) async -> (answer: Answer, file: Result<DownloadedFile, RequestError>) {
        core.enter(control)
        defer {
            core.leave(control)
            meter.end()
        }
        var answer = first
        // One for all runs, whenever each of them begins, and for what is done with the file in the end.
        var call = call
        call.groupDeadline = call.end(from: .now)
        let deadline = call.groupDeadline
        do throws(RequestError) {
            try plan.checkOptions()
            try await open(unless: { control.end != nil || deadline.isOver })
            let response = try await load(call, control, by: core, &answer)
            let file = try await conclude(response, control, until: deadline)
            return (answer, .success(file))
        } catch {
            await leaveBehind()
            if case .unsent = answer { answer = .refused(error) }
            return (answer, .failure(error))
        }
    }

    /// Until all bytes are there. The answer is the last one, before this and after it.
    private func load(
        _ call: Call, _ control: RunControl, by core: AgentCore, _ answer: inout Answer
    ) async throws(RequestError) -> Response {
        let lead = DownloadWorker(self, call)
        var travel = Exchange(core, call, control, lead, after: answer)
        while true {
            do throws(RequestError) {
                answer = await travel.run(after: answer)
                let response = try core.builder.response(of: answer, url: call.url)
                if state.withLock({ $0.isComplete }) { return response }
                throw await lead.refusal(of: response, to: control, by: core)
            } catch {
                // What broke off the lead, if it was a helper that failed; the others fail when they are ended.
                let (fault, isOutdated) = state.withLock { ($0.helperFault, $0.isOutdated) }
                await endHelpers()
                guard control.end == nil, isOutdated, beginAnew() else {
                    throw control.end == nil ? fault ?? error : error
                }
                // What was broken off has been sent, too.
                if case .arrived(let result, _) = answer { travel.leave(result) }
                lead.beginAnew()
                control.takeUp()
                answer = .unsent
            }
        }
    }

    // MARK: The part

    /// Opens the part, and finds out what of it can be gone on with.
    private func open(unless hasEnded: @escaping @Sendable () -> Bool) async throws(RequestError) {
        let plan = plan
        try await onDisk(.preparing) { () throws(FileFault) in
            let place = try DownloadPlan.Place(plan.target)
            let names = place.name.map(SafeFileName.part(of:)) ?? SafeFileName.part(ofURL: plan.url)
            let part = try PartFile(
                in: place.directory, part: names.part, metadata: names.metadata, target: place.name)
            let length = part.openedLength
            self.state.withLock { ($0.part, $0.place) = (part, place) }
            // Without a part they say nothing.
            if length == 0 { try part.removeMetadata() }
            let found = length > 0 ? try part.readMetadata() : nil
            let name = place.name ?? SafeFileName.name(contentDisposition: nil, url: plan.url)
            let completed = plan.completed(
                name, in: part.directory, isNumbered: place.name == nil, unless: hasEnded
            ) { _ in true }
            self.state.withLock { state in
                state.completed = completed
                (state.isFresh, state.isOurs) = (length == 0, found?.validator == nil)
                guard let known = found, known.isOf(url: plan.url, length: length), plan.options.resumes, plan.isGet
                else { return }
                state.metadata = known
                (state.isKept, state.isNoted) = (true, true)
                state.received = length
                state.resumedFrom = known.received(length)
            }
        }
    }

    /// Runs `body` where waiting for the disk does no harm.
    func onDisk<Value: Sendable>(
        _ phase: RequestPhase, _ body: @escaping @Sendable () throws(FileFault) -> Value
    ) async throws(RequestError) -> Value {
        do throws(FileFault) {
            return try await disk.run(body)
        } catch {
            throw RequestError(error, url: plan.url, phase: phase)
        }
    }

    /// Likewise what ends later than `body` returns.
    func onDisk<Value: Sendable>(
        _ phase: RequestPhase,
        _ body: @escaping @Sendable (@escaping @Sendable (Result<Value, FileFault>) -> Void) -> Void
    ) async throws(RequestError) -> Value {
        do throws(FileFault) {
            return try await disk.run(endingLater: body)
        } catch {
            throw RequestError(error, url: plan.url, phase: phase)
        }
    }

    var part: PartFile {
        guard let part = state.withLock({ $0.part }) else { preconditionFailure("a part is used before it is open") }
        return part
    }

    /// A run that failed keeps a part that another one can go on with, and nothing else.
    private func leaveBehind() async {
        let state = state.withLock { $0 }
        guard let part = state.part else { return }
        if state.isStuck {
            self.state.withLock { $0.part = nil }
            // What this disk is asked for now may take for ever. Whoever comes next finds what was noted before.
            return disk.close(part)
        }
        await disk.settle {
            let metadata = state.metadata
            if state.isOurs && !state.isKept || (try? part.length()) == 0 {
                part.remove()
            } else if state.isKept && (metadata.segments != nil || !state.isNoted) {
                part.note(metadata)
            }
            // The next run may begin as soon as this one is told of.
            part.unlock()
        }
        self.state.withLock { $0.part = nil }
    }
}

extension DownloadMetadata {
    /// Whether a part of this length can be the one that is spoken of, and be gone on with for this URL.
    fileprivate func isOf(url: String, length: Int64) -> Bool {
        isOf(url: url) && validator != nil
            && (segments == nil ? length <= total ?? .max : length == total)
    }
}

extension Download {
    /// All bytes are here: looks whether they are the right ones, and puts the file in its place.
    func conclude(
        _ response: Response, _ control: RunControl, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> DownloadedFile {
        let (part, place, known) = state.withLock { ($0.part, $0.place, $0.metadata) }
        guard let part, let place else { preconditionFailure("a download ends before it began") }
        if let file = state.withLock({ $0.isUnchanged ? $0.completed : nil }) {
            await leaveBehind()
            return DownloadedFile(
                path: path(of: file.name, place), length: file.length, resumedFrom: file.length, isUnchanged: true,
                response: response)
        }
        let options = plan.options
        let name = place.name ?? known.name ?? SafeFileName.name(contentDisposition: nil, url: plan.url)
        let (length, digest, taken) = try await onDisk(.processing) { end in
            self.place(
                part, as: name, replaces: place.name != nil, response,
                unless: { control.end != nil || deadline.isOver },
                then: end)
        }
        guard let taken else {
            if control.end != nil { throw control.error(behind: response, countsAttempts: true) }
            if deadline.isOver {
                let failure = TransferFailure(.timeout, .timeoutDeadline)
                throw RequestError(failure, of: response.result, url: response.url, origin: response.origin)
            }
            if let expected = options.expectedLength, expected != length {
                throw mismatch(.length, "the file has \(length) bytes, and not \(expected)", response)
            }
            throw mismatch(.sha256, "the file's SHA-256 is \(digest ?? "unknown")", response)
        }
        let resumedFrom = state.withLock { $0.resumedFrom }
        return DownloadedFile(
            path: path(of: taken, place), length: length, resumedFrom: resumedFrom, isUnchanged: false,
            response: response)
    }

    /// That of a file target as it was given.
    private func path(of name: String, _ place: DownloadPlan.Place) -> String {
        if case .file(let given) = plan.target { given } else { place.path(of: name) }
    }

    /// The name is `nil` of one that is not in its place.
    private typealias End = (length: Int64, digest: String?, name: String?)

    /// Puts the part in its place if it is the right one. Where waiting for the disk does no harm.
    private func place(
        _ part: PartFile, as name: String, replaces: Bool, _ response: Response, unless hasEnded: () -> Bool,
        then end: @escaping @Sendable (Result<End, FileFault>) -> Void
    ) {
        let options = plan.options
        do throws(FileFault) {
            let digest =
                options.sha256 == nil ? nil : try PartFile.sha256(part.descriptor, part.partPath) { !hasEnded() }
            let length = try part.length()
            let isRight =
                options.expectedLength ?? length == length
                && (options.sha256.map { expected in digest.map { equalNames(expected, $0) } ?? false } ?? true)
            guard isRight && !hasEnded() else { return end(.success((length, digest, nil))) }
            if options.skipsUnchanged, plan.isGet, let validator = validator(behind: response) {
                CompletedFile.mark(part.descriptor, url: plan.url, validator)
            }
            let taken = try part.place(as: name, replaces: replaces, hasMetadata: state.withLock { $0.isNoted })
            // It is the file now, also if the disk refuses its name.
            state.withLock { $0.part = nil }
            part.syncDirectory { fault in end(fault.map { .failure($0) } ?? .success((length, digest, taken))) }
        } catch {
            end(.failure(error))
        }
    }

    /// What the server tells the version of the file by; `nil` when it does not say so for certain.
    private func validator(behind response: Response) -> ResumeValidator? {
        state.withLock { $0.metadata.validator } ?? (response.status == 200 ? ResumeValidator(response.headers) : nil)
    }

    /// What came is not to be gone on with.
    private func mismatch(
        _ measure: RequestError.Code.FileMeasure, _ message: String, _ response: Response
    ) -> RequestError {
        state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
        return RequestError(.contentMismatch(measure), message: message, response: response)
    }
}

extension ContinuousClock.Instant? {
    /// Whether it has passed; never, where there is none.
    fileprivate var isOver: Bool { map { $0 <= .now } ?? false }
}

extension Download {
    /// Leaves the sockets unread.
    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.paused = state.pouring
            for run in state.pouring { run.core.transport.pause(run.id) }
        }
    }

    /// Reads them again.
    func resume() {
        state.withLock { state in
            state.isPaused = false
            for run in state.pouring { run.core.transport.resume(run.id) }
        }
    }

    var isPaused: Bool { state.withLock { $0.isPaused } }

    /// Sends the body of a run to the part. Under the lock, so that a pause comes behind it or is seen here.
    func pour(_ run: StreamRun, to sink: TransferSink) {
        state.withLock { state in
            state.pouring.append(run)
            run.core.transport.write(run.id, to: sink)
            if state.isPaused {
                state.paused.append(run)
                run.core.transport.pause(run.id)
            }
        }
    }

    /// The body of a run has ended. Whether it was paused meanwhile.
    func hasPoured(_ run: StreamRun) -> Bool {
        state.withLock { state in
            state.pouring.removeAll { $0 === run }
            let count = state.paused.count
            state.paused.removeAll { $0 === run }
            return state.paused.count < count
        }
    }

    /// Whether a run that was paused may have broken off because that took long, and the rest can be asked for.
    func excusesPause(_ failure: TransferFailure) -> Bool {
        switch failure.code {
        case .connectionReset, .incompleteBody, .http2Stream: state.withLock { $0.metadata.validator != nil }
        default: false
        }
    }
}

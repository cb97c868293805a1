import FerrySynchronization
import FerryTransport

/// One download: its partial file, the metadata, and its workers. Its responses arrive through a run like any other.
/// `DownloadMachine` decides what they mean.
final class Download: Sendable {
    struct State {
        /// `nil` before it was opened.
        var part: PartFile?
        var place: DownloadPlan.Place?
        /// The metadata of the version that is being loaded.
        var metadata: DownloadMetadata
        /// Whether another run can resume from the partial file.
        var isKept = false
        /// Whether this run may delete the partial file: it created it, or no run could resume from it. A partial file
        /// of another request, or one that was not requested, stays until there is data to replace it.
        var isOurs = false
        /// Whether the partial file was empty and without metadata when it was opened, and nothing was written since.
        var isFresh = false
        /// Whether the metadata is on disk. That of a small file is written only if its run fails; if the process dies,
        /// the file is loaded again.
        var isNoted = false
        /// The number of bytes from the start, for a partial file without segments.
        var received: Int64 = 0
        var resumedFrom: Int64 = 0
        /// A complete file in its place that the server may still have.
        var completed: CompletedFile?
        var isUnchanged = false
        var isComplete = false
        var hasRestarted = false
        /// The segments that a worker is loading or has loaded.
        var claimed: Set<Int> = []
        var helpers: DownloadHelpers?
        /// Set before the first helper starts, like their controls, because it may fail at once.
        var hasHelpers = false
        /// Whether the clerk of the helpers may save the progress.
        var hasClerk = false
        var helperControls: [RunControl] = []
        /// The first error of a helper.
        var helperFault: RequestError?
        /// The disk has not finished writing in time: a write is still active although the run has ended. It holds the
        /// lock until it returns, so that no other run writes to the partial file in the meantime.
        var isStuck = false
        /// The same for a job on the thread of the disk: a sync, or opening the partial file. All later jobs wait for
        /// it.
        var isHeldUp = false
        /// The deadline of the run.
        var deadline: ContinuousClock.Instant?
        /// One of the workers received bytes of another version.
        var isOutdated = false
        /// The server does not say which version its parts belong to, so none are requested.
        var isUnconfirmed = false
        /// The runs whose bodies are being written to the partial file.
        var pouring: [StreamRun] = []
        var isPaused = false
        /// Those of them that were paused: their servers may have closed the connection.
        var paused: [StreamRun] = []
        /// Workers that have something to request when the pause ends.
        var waiting: [@Sendable () -> Void] = []

        mutating func forgetHelpers() {
            (helpers, hasHelpers, helperControls, helperFault) = (nil, false, [], nil)
        }
    }

    let plan: DownloadPlan
    let meter: DownloadMeter
    let disk = DiskQueue()
    let grants = SharedGrants()
    let state: Mutex<State>

    init(_ plan: DownloadPlan, _ meter: DownloadMeter) {
        self.plan = plan
        self.meter = meter
        state = Mutex(State(metadata: DownloadMetadata(url: plan.url)))
    }

    /// From the first response until the file is in its place. Returns the last response, for its metrics.
    func carry(
        _ call: Call, _ control: RunControl, after first: Answer, by core: AgentCore
    ) async -> (answer: Answer, file: Result<DownloadedFile, RequestError>) {
        core.enter(control)
        defer {
            core.leave(control)
            meter.end()
        }
        var answer = first
        // One for all transfers, whenever they start, and for the end of the file.
        var call = call
        call.groupDeadline = call.end(from: .now)
        let deadline = call.groupDeadline
        state.withLock { $0.deadline = deadline }
        do throws(RequestError) {
            try plan.checkOptions()
            try await open(control, unless: { control.end != nil || deadline.isOver })
            let response = try await load(call, control, by: core, &answer)
            let file = try await conclude(response, control, until: deadline)
            return (answer, .success(file))
        } catch {
            await leaveBehind(control)
            if case .unsent = answer { answer = .refused(error) }
            return (answer, .failure(error))
        }
    }

    /// Loads until all bytes are there. Returns the last response.
    private func load(
        _ call: Call, _ control: RunControl, by core: AgentCore, _ answer: inout Answer
    ) async throws(RequestError) -> Response {
        let lead = DownloadWorker(self, call)
        var exchange = Exchange(core, call, control, lead, after: answer)
        while true {
            do throws(RequestError) {
                answer = await exchange.run(after: answer)
                let response = try core.builder.response(of: answer, url: call.url)
                if state.withLock({ $0.isComplete }) { return response }
                throw await lead.refusal(of: response, to: control, by: core)
            } catch {
                // The error of a helper that ended the lead; the other helpers fail because they are ended.
                let (fault, isOutdated) = state.withLock { ($0.helperFault, $0.isOutdated) }
                await endHelpers()
                guard control.end == nil, isOutdated, beginAnew() else {
                    throw control.end == nil ? fault ?? error : error
                }
                // A transfer that was broken off was sent, too.
                if case .arrived(let result, _) = answer { exchange.leave(result) }
                lead.beginAnew()
                control.takeUp()
                answer = .unsent
            }
        }
    }

    // MARK: The partial file

    /// Opens the partial file, and finds out what can be resumed.
    private func open(
        _ control: RunControl, unless hasEnded: @escaping @Sendable () -> Bool
    ) async throws(RequestError) {
        let plan = plan
        do throws(FileFault) {
            try DiskQueue.check()
        } catch {
            throw RequestError(error, url: plan.url, phase: .preparing)
        }
        try await onDisk(.preparing, of: control) { () throws(FileFault) in
            let place = try DownloadPlan.Place(plan.target)
            let names = place.name.map(SafeFileName.part(of:)) ?? SafeFileName.part(ofURL: plan.url)
            let part = try PartFile(
                in: place.directory, part: names.part, metadata: names.metadata, target: place.name,
                unless: hasEnded)
            let length = part.openedLength
            self.state.withLock { ($0.part, $0.place) = (part, place) }
            // Without a partial file the metadata has no meaning.
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

    /// Runs `body` where waiting for the disk does no harm. If the run has ended, and the disk does not finish in time,
    /// it throws the end of the run.
    func onDisk<Value: Sendable>(
        _ phase: RequestPhase, of control: RunControl, behind head: Response? = nil,
        _ body: @escaping @Sendable () throws(FileFault) -> Value
    ) async throws(RequestError) -> Value {
        try await onDisk(phase, of: control, behind: head) { end in end(Result { () throws(FileFault) in try body() }) }
    }

    /// The same for work that ends after `body` returns.
    func onDisk<Value: Sendable>(
        _ phase: RequestPhase, of control: RunControl, behind head: Response?,
        _ body: @escaping @Sendable (@escaping @Sendable (Result<Value, FileFault>) -> Void) -> Void
    ) async throws(RequestError) -> Value {
        let deadline = state.withLock { $0.deadline }
        let result = await disk.run(for: control, until: deadline, body)
        switch result {
        case .success(let value): return value
        // What a job leaves undone because the run has ended is no error of the disk.
        case .failure(let fault) where control.end == nil && !deadline.isOver:
            throw RequestError(fault, url: plan.url, phase: phase)
        case .failure: break
        case nil: state.withLock { $0.isHeldUp = true }
        }
        guard let head else { throw control.overdue(url: plan.url) }
        // Before that the exchange adds the attempts.
        throw control.overdue(behind: head, countsAttempts: phase == .processing)
    }

    var part: PartFile {
        guard let part = state.withLock({ $0.part }) else { preconditionFailure("a part is used before it is open") }
        return part
    }

    /// A failed run keeps a partial file that another run can resume from, and deletes any other.
    private func leaveBehind(_ control: RunControl) async {
        let (isHeldUp, deadline, part) = state.withLock { ($0.isStuck || $0.isHeldUp, $0.deadline, $0.part) }
        part?.isLeft()
        // It is the file already, or was not opened.
        if part == nil && !isHeldUp { return }
        // Further requests to this disk may take for ever.
        if isHeldUp { return disk.start { self.tidy() } }
        // A helper may have broken it off. That is no reason to leave the partial file locked.
        control.takeUp()
        _ = await disk.run(for: control, until: deadline) { end in end(self.tidy()) }
    }

    /// Call it on the disk's thread, after all other jobs. One that the run did not wait for may only now have opened
    /// the partial file, or made it the file.
    private func tidy() {
        let state = state.withLock { state in
            defer { state.part = nil }
            return state
        }
        // A write that is stuck has the lock, too. The next run finds the metadata that was saved before.
        guard let part = state.part, !state.isStuck else { return }
        let isUseless = state.isOurs && !state.isKept || (try? part.length()) == 0
        if !isUseless, state.isKept && (state.metadata.segments != nil || !state.isNoted) { part.note(state.metadata) }
        // After a sync that failed, only what the saved metadata of segments say is certainly on disk.
        if isUseless || part.lossFault != nil && state.metadata.segments == nil { part.remove() }
        // The next run may start as soon as this one has ended.
        part.unlock()
    }
}

extension DownloadMetadata {
    /// Whether a partial file of this length matches the metadata, and can be resumed for this URL.
    fileprivate func isOf(url: String, length: Int64) -> Bool {
        isOf(url: url) && validator != nil
            && (segments == nil ? length <= total ?? .max : length == total)
    }
}

extension Download {
    /// All bytes are there: checks them, and moves the file to its place.
    func conclude(
        _ response: Response, _ control: RunControl, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> DownloadedFile {
        let (part, place, known) = state.withLock { ($0.part, $0.place, $0.metadata) }
        guard let part, let place else { preconditionFailure("a download ends before it began") }
        if let file = state.withLock({ $0.isUnchanged ? $0.completed : nil }) {
            await leaveBehind(control)
            return DownloadedFile(
                path: path(of: file.name, place), length: file.length, resumedFrom: file.length, isUnchanged: true,
                response: response)
        }
        let options = plan.options
        let name = place.name ?? known.name ?? SafeFileName.name(contentDisposition: nil, url: plan.url)
        let (length, digest, taken) = try await onDisk(.processing, of: control, behind: response) { end in
            self.place(
                part, as: name, replaces: place.name != nil, response,
                unless: { control.end != nil || deadline.isOver },
                then: end)
        }
        guard let taken else {
            if control.end != nil || deadline.isOver { throw control.overdue(behind: response, countsAttempts: true) }
            if let expected = options.expectedLength, expected != length {
                throw mismatch(.length, "expected \(expected) bytes, but the file has \(length)", response)
            }
            throw mismatch(.sha256, "the file's SHA-256 is \(digest ?? "unknown")", response)
        }
        let resumedFrom = state.withLock { $0.resumedFrom }
        return DownloadedFile(
            path: path(of: taken, place), length: length, resumedFrom: resumedFrom, isUnchanged: false,
            response: response)
    }

    /// For a file target, the path as it was given.
    private func path(of name: String, _ place: DownloadPlan.Place) -> String {
        if case .file(let given) = plan.target { given } else { place.path(of: name) }
    }

    /// The name is `nil` if the file is not in its place.
    private typealias End = (length: Int64, digest: String?, name: String?)

    /// Moves the partial file to its place if its content is right. Call it where waiting for the disk does no harm.
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
            let taken = try part.place(
                as: name, replaces: replaces, hasMetadata: state.withLock { $0.isNoted }, unless: hasEnded)
            guard let taken else { return end(.success((length, digest, nil))) }
            // From here on it is the file, even if the disk refuses its name.
            state.withLock { $0.part = nil }
            part.syncDirectory { fault in end(fault.map { .failure($0) } ?? .success((length, digest, taken))) }
        } catch {
            end(.failure(error))
        }
    }

    /// The validator of the file's version; `nil` if the server sent no strong one.
    private func validator(behind response: Response) -> ResumeValidator? {
        state.withLock { $0.metadata.validator } ?? (response.status == 200 ? ResumeValidator(response.headers) : nil)
    }

    /// The response cannot be combined with the partial file.
    private func mismatch(
        _ measure: RequestError.Code.FileMeasure, _ message: String, _ response: Response
    ) -> RequestError {
        state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
        return RequestError(.contentMismatch(measure), message: message, response: response)
    }
}

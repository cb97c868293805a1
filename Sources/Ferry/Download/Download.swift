import FerryTransport
import Synchronization

/// One download: the part that is there, what is known of it, and who works at it. Its answers come by way of a journey
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
        /// Whether the part is for this run to throw away: it is of its making, or nobody could go on with it. One that is
        /// of another request, or that was not asked for, stays until there is something to put in its place.
        var isOurs = false
        /// Whether the part was empty when it was opened, with no metadata beside it, and nothing was written since.
        var isFresh = false
        /// Whether the metadata stands on the disk. That of a small file is written down only when its run fails: should
        /// its process die, the file is loaded anew.
        var isNoted = false
        /// Bytes from the start on, of a part that is not in segments.
        var received: Int64 = 0
        var resumedFrom: Int64 = 0
        var isComplete = false
        var hasRestarted = false
        /// Segments that somebody works at, or has.
        var claimed: Set<Int> = []
        var helpers: DownloadHelpers?
        /// Theirs, known before the first of them begins: it may fail at once.
        var helperJourneys: [Journey] = []
        /// What one of them has failed with, the first.
        var helperFault: RequestError?
        /// Whose bodies go to the part now.
        var pouring: [StreamRun] = []
        var isPaused = false
        /// A server may have hung up on a run that was paused.
        var wasPaused = false
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
        _ itinerary: Itinerary, _ journey: Journey, after first: Answer, by core: AgentCore
    ) async -> (answer: Answer, file: Result<DownloadedFile, RequestError>) {
        core.enter(journey)
        defer {
            core.leave(journey)
            meter.end()
        }
        var answer = first
        // One for all journeys, whenever each of them begins, and for what is done with the file in the end.
        var itinerary = itinerary
        itinerary.groupDeadline = itinerary.end
        let deadline = itinerary.groupDeadline
        do throws(RequestError) {
            try plan.checkOptions()
            try await open()
            let lead = DownloadWorker(self, itinerary)
            var travel = Travel(core, itinerary, journey, lead, after: first)
            answer = await travel.run(after: first)
            let response = try core.builder.response(of: answer, url: itinerary.url)
            guard state.withLock({ $0.isComplete }) else {
                throw await lead.refusal(of: response, to: journey, by: core)
            }
            let file = try await conclude(response, journey, until: deadline)
            return (answer, .success(file))
        } catch var error {
            await endHelpers()
            // What ended the lead was the helper that failed.
            if error.code == .cancelled, let fault = helperFault, fault.code != .cancelled {
                error = fault
            }
            await leaveBehind()
            if case .unsent = answer { answer = .refused(error) }
            return (answer, .failure(error))
        }
    }

    // MARK: The part

    /// Opens the part, and finds out what of it can be gone on with.
    private func open() async throws(RequestError) {
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
            self.state.withLock { state in
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
    private func onDisk<Value: Sendable>(
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

    // MARK: The end

    /// All bytes are here: looks whether they are the right ones, and puts the file in its place.
    private func conclude(
        _ response: Response, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> DownloadedFile {
        let (part, place, known) = state.withLock { ($0.part, $0.place, $0.metadata) }
        guard let part, let place else { preconditionFailure("a download ends before it began") }
        let options = plan.options
        let name = place.name ?? known.name ?? SafeFileName.name(contentDisposition: nil, url: plan.url)
        let (length, digest, taken) = try await onDisk(.processing) { end in
            self.place(
                part, as: name, replaces: place.name != nil, unless: { journey.end != nil || deadline.isOver },
                then: end)
        }
        guard let taken else {
            if journey.end != nil { throw journey.error(behind: response, countsAttempts: true) }
            if deadline.isOver {
                let failure = TransferFailure(.timeout, .timeoutDeadline)
                throw RequestError(failure, of: response.result, url: response.url, trail: response.trail)
            }
            if let expected = options.expectedLength, expected != length {
                throw mismatch(.length, "the file has \(length) bytes, and not \(expected)", response)
            }
            throw mismatch(.sha256, "the file's SHA-256 is \(digest ?? "unknown")", response)
        }
        let resumedFrom = state.withLock { $0.resumedFrom }
        var path = place.path(of: taken)
        if case .file(let given) = plan.target { path = given }
        return DownloadedFile(
            path: path, length: length, resumedFrom: resumedFrom, response: response)
    }

    /// The name is `nil` of one that is not in its place.
    private typealias End = (length: Int64, digest: String?, name: String?)

    /// Puts the part in its place if it is the right one. Where waiting for the disk does no harm.
    private func place(
        _ part: PartFile, as name: String, replaces: Bool, unless hasEnded: () -> Bool,
        then end: @escaping @Sendable (Result<End, FileFault>) -> Void
    ) {
        let options = plan.options
        do throws(FileFault) {
            let digest = options.sha256 == nil ? nil : try part.sha256(while: { !hasEnded() })
            let length = try part.length()
            let isRight =
                options.expectedLength ?? length == length
                && (options.sha256.map { expected in digest.map { equalNames(expected, $0) } ?? false } ?? true)
            guard isRight && !hasEnded() else { return end(.success((length, digest, nil))) }
            let taken = try part.place(as: name, replaces: replaces, hasMetadata: state.withLock { $0.isNoted })
            // It is the file now, also if the disk refuses its name.
            state.withLock { $0.part = nil }
            part.syncDirectory { fault in end(fault.map { .failure($0) } ?? .success((length, digest, taken))) }
        } catch {
            end(.failure(error))
        }
    }

    /// What came is not to be gone on with.
    private func mismatch(
        _ measure: RequestError.Code.FileMeasure, _ message: String, _ response: Response
    ) -> RequestError {
        state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
        return RequestError(.contentMismatch(measure), message: message, response: response)
    }
}

extension DownloadMetadata {
    /// Whether a part of this length can be the one that is spoken of, and be gone on with for this URL.
    fileprivate func isOf(url: String, length: Int64) -> Bool {
        isOf(url: url) && validator != nil
            && (segments == nil ? length <= total ?? .max : length == total)
    }
}

extension Itinerary {
    /// When it is over, if it begins now.
    fileprivate var end: ContinuousClock.Instant? {
        [deadline.map { .now + $0 }, groupDeadline].compactMap { $0 }.min()
    }
}

extension ContinuousClock.Instant? {
    /// Whether it has passed; never, where there is none.
    fileprivate var isOver: Bool { map { $0 <= .now } ?? false }
}

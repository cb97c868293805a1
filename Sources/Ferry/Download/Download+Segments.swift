import FerrySynchronization
import FerryTransport

extension Download {
    /// Divides a file whose first piece was requested into segments.
    func segments(of total: Int64, first: Int64) -> [DownloadMetadata.Segment] {
        let rest = total - first
        let count = max(min(Int64(plan.options.segments), rest / plan.options.minimumSegmentSize), 1)
        // The last segments are one byte longer, and no product exceeds the size of the file.
        let (whole, over) = rest.quotientAndRemainder(dividingBy: count)
        func start(_ index: Int64) -> Int64 { first + index * whole + max(0, index - (count - over)) }
        return [DownloadMetadata.Segment(start: 0, end: first)]
            + (0..<count).map { DownloadMetadata.Segment(start: start($0), end: start($0 + 1)) }
    }

    /// The next segment that is neither complete nor being loaded; `nil` if there is none.
    func claimSegment() -> Int? {
        state.withLock { state in
            guard let segments = state.metadata.segments else { return nil }
            let next = segments.indices.first { !segments[$0].isComplete && !state.claimed.contains($0) }
            if let next { state.claimed.insert(next) }
            return next
        }
    }

    /// Starts helpers that load segments in parallel with the lead, once.
    func callHelpers(_ call: Call, _ control: RunControl, _ core: AgentCore) {
        let (metadata, resumedFrom, isFirst) = state.withLock { ($0.metadata, $0.resumedFrom, $0.helpers == nil) }
        guard isFirst else { return }
        meter.begin(at: metadata.received(0), resumedFrom: resumedFrom, total: metadata.total, isResumable: true)
        // No helpers for a file that is resumed in one segment: the lead loads all of it, at the full rate.
        let controls = (1..<plan.options.segments).map { _ in RunControl(tag: call.tag, isRefresh: control.isRefresh) }
        // Before the first of them can receive a response that belongs to another version of the file.
        state.withLock { ($0.hasHelpers, $0.helperControls, $0.hasClerk) = (true, controls, true) }
        for helper in controls { control.adopt(helper) }
        let work = Task {
            await withTaskGroup { group in
                for helper in controls {
                    group.addTask { await self.loadSegments(call.ofPart, helper, of: control, core) }
                }
            }
        }
        let clerk = Task { await keepAccount(control, url: call.url) }
        state.withLock { $0.helpers = DownloadHelpers(work: work, clerk: clerk) }
    }

    /// Whether helpers write to the partial file, too.
    var hasHelpers: Bool { state.withLock { $0.hasHelpers } }

    /// No worker is active, and the data is of no use: restarts the download. Returns `false` if it was already
    /// restarted.
    func beginAnew() -> Bool {
        if !restart() { return false }
        state.withLock { state in
            state.forgetHelpers()
            (state.isOutdated, state.claimed) = (false, [])
        }
        return true
    }

    /// A segment belongs to another version of the file.
    func isOutdated() { state.withLock { $0.isOutdated = true } }

    /// A part came without the validator that it must have.
    func isUnconfirmed() { state.withLock { $0.isUnconfirmed = true } }

    /// Waits until all segments are complete; throws the error of one that failed.
    func waitForHelpers() async throws(RequestError) {
        guard let helpers = state.withLock({ $0.helpers }) else { return }
        await helpers.work.value
        dismissClerk()
        if let fault = helperFault { throw fault }
        state.withLock { $0.isComplete = $0.metadata.segments?.allSatisfy(\.isComplete) ?? false }
    }

    /// Ends all helpers.
    func endHelpers() async {
        guard let helpers = state.withLock({ $0.helpers }) else { return }
        for control in state.withLock({ $0.helperControls }) { control.end(.cancelled) }
        await helpers.work.value
        dismissClerk()
    }

    /// The clerk saves nothing more. What the disk has begun for it is not waited for: later jobs come after that.
    private func dismissClerk() {
        let helpers = state.withLock { state in
            state.hasClerk = false
            return state.helpers
        }
        helpers?.clerk.cancel()
    }

    /// The first error of a helper.
    var helperFault: RequestError? { state.withLock { $0.helperFault } }

    /// Loads one segment after another, until none is left.
    private func loadSegments(
        _ call: Call, _ control: RunControl, of lead: RunControl, _ core: AgentCore
    ) async {
        while helperFault == nil, let index = claimSegment() {
            let worker = DownloadWorker(self, call, segment: index)
            let answer = await Exchange.run(call, control, after: .unsent, worker, by: core)
            do throws(RequestError) {
                let response = try core.builder.response(of: answer, url: call.url)
                guard state.withLock({ $0.metadata.segments?[index].isComplete ?? false }) else {
                    throw await worker.refusal(of: response, to: control, by: core)
                }
            } catch {
                return fail(error, lead)
            }
        }
    }

    /// The file cannot become complete: ends all workers, whatever they are doing. A clerk that was dismissed meanwhile
    /// does not know them any more.
    private func fail(_ error: RequestError, _ lead: RunControl, asClerk: Bool = false) {
        let helpers: [RunControl]? = state.withLock { state in
            if asClerk && !state.hasClerk { return nil }
            if state.helperFault == nil { state.helperFault = error }
            return state.helperControls
        }
        guard let helpers else { return }
        for helper in helpers { helper.end(.cancelled) }
        lead.breakOff()
    }

    /// Runs once a second.
    private func keepAccount(_ lead: RunControl, url: String) async {
        while true {
            try? await Task.sleep(for: .seconds(1))
            if Task.isCancelled { return }
            await disk.settle {
                // Only what was counted before the sync is on disk after it. And the clerk may have been dismissed
                // while this waited for another job: then the metadata belong to others.
                let (isDismissed, metadata, part) = self.state.withLock { (!$0.hasClerk, $0.metadata, $0.part) }
                guard let part, !isDismissed else { return }
                part.note(metadata)
                guard let fault = part.lossFault else { return }
                self.fail(RequestError(fault, url: url, phase: .body), lead, asClerk: true)
            }
        }
    }
}

/// The workers that load segments in parallel with the lead.
struct DownloadHelpers: Sendable {
    var work: Task<Void, Never>
    /// Saves their progress in the metadata file.
    var clerk: Task<Void, Never>
}

extension Download {
    /// Files up to this size usually arrive in one piece: their metadata is not written.
    private static let small: Int64 = 256 * 1024

    /// The rate limit of one of the parallel workers in bytes per second; 0 means no limit.
    func rate(for question: DownloadMachine.Question) -> UInt64 {
        guard let rate = plan.options.bytesPerSecond else { return 0 }
        let segments = state.withLock { $0.metadata.segments }
        // Before the first response the number of segments is unknown.
        let left = segments?.count { !$0.isComplete } ?? (question.isFirst ? plan.options.segments : 1)
        return UInt64(max(rate / max(min(left, plan.options.segments), 1), 1))
    }

    /// What is missing, and the validator of the data that exists.
    func question(segment index: Int?) -> DownloadMachine.Question {
        state.withLock { state in
            var question = DownloadMachine.Question(validator: state.metadata.validator, total: state.metadata.total)
            if let index, let segment = state.metadata.segments?[index] {
                question.offset = segment.start + segment.written
                question.end = segment.end
            } else if question.validator != nil && plan.isGet {
                question.offset = state.received
            }
            // A server that has sent a different version before does not serve ranges.
            if plan.options.segments > 1, plan.isGet, !question.isRanged, !state.hasRestarted {
                question = DownloadMachine.Question(end: plan.options.minimumSegmentSize, isFirst: true)
            }
            // Once the file is in segments, the other workers write to it.
            if index == nil && question.offset == 0 && !state.hasRestarted {
                question.complete = state.completed?.validator
            }
            return question
        }
    }

    /// This many bytes were added to the partial file.
    func count(_ more: Int64, segment: Int?) {
        state.withLock { state in
            // The first segment was requested before there were segments.
            if let segment = segment ?? (state.metadata.segments == nil ? nil : 0) {
                state.metadata.segments?[segment].written += more
            } else {
                state.received += more
            }
        }
        meter.add(more)
    }

    /// The data is of no use. Returns `false` if the download was already restarted.
    func restart() -> Bool {
        state.withLock { state in
            // Bytes of the old version may still arrive in the partial file.
            if state.hasRestarted || state.isStuck { return false }
            state.hasRestarted = true
            state.metadata = state.metadata.anew
            (state.received, state.resumedFrom) = (0, 0)
            return true
        }
    }

    /// The whole file is there.
    func isWhole(_ length: Int64) {
        let (isNews, resumedFrom) = state.withLock { state in
            state.isComplete = true
            return (state.received != length, state.resumedFrom)
        }
        if isNews { meter.begin(at: length, resumedFrom: resumedFrom, total: length, isResumable: true) }
    }

    /// Throws if a file of this length is not wanted.
    func checkLength(_ total: Int64?, _ head: Response) throws(RequestError) {
        guard let total else { return }
        if let expected = plan.options.expectedLength, expected != total {
            throw RequestError(
                .contentMismatch(.length), phase: .body,
                message: "expected \(expected) bytes, but the file has \(total)",
                response: head)
        }
        if let most = plan.most, most < total {
            throw RequestError(
                .responseTooLarge, phase: .body, message: "the file has \(total) bytes, more than the limit of \(most)",
                response: head)
        }
    }

    /// The server still has the version of the complete local file.
    func isUnchanged() {
        let length = state.withLock { state in
            guard let file = state.completed else { preconditionFailure("no complete file was asked for") }
            (state.isComplete, state.isUnchanged, state.resumedFrom) = (true, true, file.length)
            return file.length
        }
        meter.begin(at: length, resumedFrom: length, total: length, isResumable: true)
    }

    /// Whether the file of this response is already there: the server may have ignored the condition, or only now have
    /// sent the name of the file.
    func isUnchanged(_ head: Response, total: Int64?, _ control: RunControl) async throws(RequestError) -> Bool {
        let (place, hasRestarted) = state.withLock { ($0.place, $0.hasRestarted) }
        guard plan.options.skipsUnchanged, plan.isGet, let place, !hasRestarted,
            let validator = ResumeValidator(head.headers)
        else { return false }
        let (plan, part) = (plan, part)
        let name =
            place.name
            ?? SafeFileName.name(contentDisposition: head.headers["Content-Disposition"], url: plan.url)
        let found = try await onDisk(.body, of: control, behind: head) { () throws(FileFault) in
            plan.completed(name, in: part.directory, isNumbered: place.name == nil) { file in
                file.validator == validator && total ?? file.length == file.length
            }
        }
        guard let found else { return false }
        state.withLock { $0.completed = found }
        isUnchanged()
        return true
    }

    /// How a response with the beginning of the file can be used.
    enum Beginning {
        case whole
        /// As the first segment.
        case segments
        /// Not at all, because nothing can be appended to the piece.
        case nothing
    }

    /// The file begins with this response: empties the partial file, and writes the metadata.
    func begin(
        _ head: Response, length: Int64?, total: Int64?, _ control: RunControl
    ) async throws(RequestError) -> Beginning {
        let part = self.part
        let (place, isFresh, known, isUnconfirmed) = state.withLock {
            ($0.place, $0.isFresh, $0.metadata, $0.isUnconfirmed)
        }
        var fresh = known.anew
        fresh.total = total
        if plan.isGet && head.canBeResumed && !isUnconfirmed { fresh.validator = ResumeValidator(head.headers) }
        if place?.name == nil {
            fresh.name = SafeFileName.name(contentDisposition: head.headers["Content-Disposition"], url: plan.url)
        }
        if let total, let length, length < total {
            if fresh.validator == nil { return .nothing }
            fresh.segments = segments(of: total, first: length)
        }
        let metadata = fresh
        let isNoted =
            metadata.validator != nil && (metadata.segments != nil || total.map { $0 > Self.small } ?? true)
        // For most small files there is nothing to do.
        if !isFresh || isNoted {
            try await onDisk(.body, of: control, behind: head) { () throws(FileFault) in
                if !isFresh {
                    // In this order: whoever finds the partial file after a kill must not combine it with the old
                    // metadata, in particular when it has its full length again but no content.
                    try part.removeMetadata()
                    self.state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
                    try part.setLength(0, isDurable: true)
                }
                if metadata.segments != nil { try part.setLength(total ?? 0) }
                if isNoted { try part.write(metadata) }
            }
        }
        state.withLock { state in
            state.metadata = metadata
            state.forgetHelpers()
            state.isKept = metadata.validator != nil
            (state.isNoted, state.isFresh) = (isNoted, false)
            (state.received, state.resumedFrom) = (0, 0)
            state.claimed = metadata.segments == nil ? [] : [0]
        }
        return metadata.segments == nil ? .whole : .segments
    }

    /// Discards the latest bytes.
    func takeBack(
        to offset: Int64, by count: Int64, segment: Int?, _ head: Response, _ control: RunControl
    ) async throws(RequestError) {
        let part = part
        self.count(-count, segment: segment)
        if segment != nil { return }
        try await onDisk(.body, of: control, behind: head) { () throws(FileFault) in try part.setLength(offset) }
    }
}

extension Response {
    /// Whether ranges of it can be requested later, according to the server.
    fileprivate var canBeResumed: Bool {
        !headers.isBodyEncoded && !headers.values(of: "Accept-Ranges").contains { equalNames($0, "none") }
    }
}

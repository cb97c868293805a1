import FerrySynchronization
import FerryTransport

/// Loads a file or segments of it: the work of one run of a download. It requests what is missing. When a response has
/// passed the policies of the run, it decides what happens to its body.
final class DownloadWorker: BodyCarrier {
    /// The latest transfer.
    private struct Current: Sendable {
        var run: StreamRun
        var question: DownloadMachine.Question
        var count: WrittenCount
    }

    private let download: Download
    /// The record of the whole run, for helpers as for the lead.
    private let call: Call
    private let current = Mutex<Current?>(nil)
    /// Its current segment; `nil` for the lead until the file is in segments.
    private let segment: Mutex<Int?>
    private let isLead: Bool

    /// Creates the lead, or a helper for a segment.
    init(_ download: Download, _ call: Call, segment: Int? = nil) {
        self.download = download
        self.call = call
        self.segment = Mutex(segment)
        isLead = segment == nil
    }

    // MARK: Requests

    /// The target of a redirect may have been signed for a limited time.
    var beginsAtOrigin: Bool { true }

    var grants: SharedGrants? { download.grants }

    /// A paused download requests nothing: nobody would read the response, and a server that closes meanwhile would be
    /// asked again and again. Adapters run afterwards, because signatures and tokens may expire during the pause.
    func awaitTurn(
        _ control: RunControl, until deadline: ContinuousClock.Instant?, _ url: String
    ) async throws(RequestError) -> Bool {
        guard let hasWaited = await download.awaitResume(control, until: deadline) else {
            throw control.overdue(url: url)
        }
        return hasWaited
    }

    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun {
        let index = segment.withLock { segment in
            if segment == nil { segment = download.claimSegment() }
            return segment
        }
        let question = download.question(segment: index)
        built.transfer.ask(question, rate: download.rate(for: question))
        let count = WrittenCount()
        let run = StreamRun(built.transfer, tag: tag, core: core, isHeld: true) { [download] total in
            download.count(count.grow(to: Int64(clamping: total)), segment: index)
        }
        current.withLock { $0 = Current(run: run, question: question, count: count) }
        return run
    }

    func goOn(from result: TransferResult) {
        current.withLock { $0.take() }?.run.abandon(expecting: result.contentLength)
    }

    func waits(after head: Response) {
        guard let current = current.withLock({ $0 }) else { return }
        let length = current.run.contentLength(head)
        // A body that is accepted is the file.
        if download.plan.refusal(of: head, bodyLength: length, to: current.question) != nil { current.run.shorten() }
    }

    func keepsResponse() { current.withLock { $0?.run }?.lengthen() }

    // MARK: Responses

    func take(_ head: Response, of control: RunControl, by core: AgentCore) async throws(RequestError) -> TakenBody {
        let current = current.withLock { $0 }
        // Without one, the response did not come from the network, and no range was requested.
        let question = current?.question ?? DownloadMachine.Question()
        let length = Self.contentLength(head, current)
        let action = DownloadMachine.answered(
            status: head.status, head.headers, contentLength: length, to: question,
            isAccepted: download.plan.refusal(of: head, bodyLength: length, to: question) == nil)
        switch action {
        case .other: return .left
        case .complete:
            current?.run.abandon(expecting: head.result.contentLength)
            download.isWhole(question.offset)
            return .ended(head.result)
        case .unchanged:
            current?.run.abandon(expecting: head.result.contentLength)
            download.isUnchanged()
            return .ended(head.result)
        case .restart(let why):
            return try restart(why, head)
        case .fail(let why): throw mismatch(why, head)
        case .take(let offset, let length, let total):
            try download.checkLength(total, head)
            // An interceptor responds with the whole file, but the other workers write to their segments.
            if current == nil, segment.withLock({ $0 != nil }) { return try restart(.ignoredRange, head) }
            if offset == 0 && (question.end == nil || question.isFirst) {
                if try await download.isUnchanged(head, total: total, control) {
                    current?.run.abandon(expecting: head.result.contentLength)
                    return .ended(head.result)
                }
                // A response with the whole file has no helpers, and may use the full rate.
                if question.isFirst && head.status != 206 && download.plan.options.bytesPerSecond != nil {
                    return try restart(.ignoredRange, head)
                }
                // A response that did not come from the network is not cut either.
                if head.status == 206 && length != total && current?.run.isWhole ?? true {
                    return try restart(.otherRange, head)
                }
                switch try await download.begin(head, length: length, total: total, control) {
                case .whole: break
                case .segments: segment.withLock { $0 = 0 }
                case .nothing: return try restart(.otherVersion, head)
                }
            }
            let body = Body(head: head, offset: offset, length: length, total: total)
            return try await take(body, current, of: control, by: core)
        }
    }

    private static func contentLength(_ head: Response, _ current: Current?) -> Int64? {
        current.map { $0.run.contentLength(head) } ?? head.result.contentLength
    }

    /// Requests the whole file, once. If helpers write to the partial file, this has to wait for their end, and only
    /// the lead does it.
    private func restart(_ why: DownloadMachine.Mismatch, _ head: Response) throws(RequestError) -> TakenBody {
        if why == .unknownVersion { download.isUnconfirmed() }
        if !isLead || download.hasHelpers {
            download.isOutdated()
        } else if download.restart() {
            segment.withLock { $0 = nil }
            return .again
        }
        throw mismatch(why, head)
    }

    /// Begins again without a segment, after its transfers have ended. An interceptor may respond to the next request:
    /// its response must not be compared with the range of the last transfer.
    func beginAnew() {
        segment.withLock { $0 = nil }
        current.withLock { $0 = nil }
    }

    private struct Body {
        var head: Response
        var offset: Int64
        var length: Int64?
        var total: Int64?
    }

    private func take(
        _ body: Body, _ current: Current?, of control: RunControl, by core: AgentCore
    ) async throws(RequestError) -> TakenBody {
        let download = download
        let segment = segment.withLock { $0 }
        if segment == nil {
            let (resumedFrom, isKept) = download.state.withLock { ($0.resumedFrom, $0.isKept) }
            download.meter.begin(at: body.offset, resumedFrom: resumedFrom, total: body.total, isResumable: isKept)
        }
        guard let current, !current.run.isWhole else {
            let (part, bytes) = (download.part, body.head.bytes)
            try await download.onDisk(.body, of: control, behind: body.head) { () throws(FileFault) in
                try part.write(bytes, at: body.offset)
            }
            download.count(Int64(bytes.count), segment: segment)
            return try end(body, count: Int64(bytes.count), body.head.result)
        }
        if isLead && segment != nil { download.callHelpers(call, control, core) }
        let (result, wasPaused) = try await pour(body, current, of: control, by: core)
        let taken = try await after(result, wasPaused, body, current, control)
        guard isLead, segment != nil, case .ended(let result) = taken, result.succeeded else { return taken }
        if let next = download.claimSegment() {
            self.segment.withLock { $0 = next }
            return .again
        }
        try await download.waitForHelpers()
        return taken
    }

    /// Writes the body, or as much of it as arrives. Returns whether it was paused in the meantime.
    private func pour(
        _ body: Body, _ current: Current, of control: RunControl, by core: AgentCore
    ) async throws(RequestError) -> (result: TransferResult, wasPaused: Bool) {
        let most = body.length ?? download.plan.most.map { max($0 - body.offset, 1) } ?? 0
        let sink = TransferSink(
            descriptor: download.part.descriptor, offset: body.offset, most: UInt64(clamping: most))
        let answer = await control.carryBody(of: current.run, by: core) { download.pour(current.run, to: sink) }
        let wasPaused = download.hasPoured(current.run)
        switch answer {
        case .result(let result), .arrived(let result, _):
            if result.isStillWriting { download.state.withLock { $0.isStuck = true } }
            return (result, wasPaused)
        case .refused(let error): throw error
        case .unsent, nil: throw control.error(behind: body.head, countsAttempts: false)
        }
    }

    private func after(
        _ result: TransferResult, _ wasPaused: Bool, _ body: Body, _ current: Current, _ control: RunControl
    ) async throws(RequestError) -> TakenBody {
        guard let failure = result.failure else { return try end(body, count: current.count.value, result) }
        if isLead, let fault = download.helperFault { throw fault }
        if failure.code == .bodyTooLarge && body.length != nil {
            // More bytes arrived than announced, so what arrived before is not trusted either.
            try await download.takeBack(
                to: body.offset, by: current.count.value, segment: segment.withLock { $0 }, body.head, control)
            throw mismatch(.contradiction, body.head)
        }
        return wasPaused && download.excusesPause(failure) ? .again : .ended(result)
    }

    private func end(_ body: Body, count: Int64, _ result: TransferResult) throws(RequestError) -> TakenBody {
        if let length = body.length, count < length {
            throw RequestError(
                .incompleteBody(expected: length, got: count), phase: .body, message: "the body ended early",
                response: Response(result, url: body.head.url, origin: body.head.origin))
        }
        if segment.withLock({ $0 == nil }) { download.isWhole(body.offset + count) }
        return .ended(result)
    }

    // MARK: Errors

    private func mismatch(_ why: DownloadMachine.Mismatch, _ head: Response) -> RequestError {
        RequestError(.resumeMismatch, message: why.rawValue, response: head)
    }

    /// The error for a response that is not a file, because of its status or type.
    func refusal(of response: Response, to control: RunControl, by core: AgentCore) async -> RequestError {
        let current = current.withLock { $0 }
        let error =
            download.plan.refusal(
                of: response, bodyLength: Self.contentLength(response, current),
                to: current?.question ?? DownloadMachine.Question())
            ?? RequestError(
                .invalidStatusCode(response.status), message: "a response with status \(response.status) is not a file",
                response: response)
        guard let run = current?.run, !run.isWhole else { return error }
        // Its body may take a long time.
        return await control.read(of: run, by: core) { await run.explained(error, response) }
            ?? control.error(behind: response, countsAttempts: true)
    }
}

/// Counts the bytes of one body in its file. Updated on the event loop's thread, and read when the body has ended.
private final class WrittenCount: Sendable {
    private let total = Atomic<Int64>(0)

    var value: Int64 { total.load(ordering: .acquiring) }

    /// The number of additional bytes.
    func grow(to count: Int64) -> Int64 { count - total.exchange(count, ordering: .acquiringAndReleasing) }
}

extension TransferRequest {
    /// Requests a range of a file if a part of it exists. The download sets ranges and encodings; those of the request
    /// are ignored.
    fileprivate mutating func ask(_ question: DownloadMachine.Question, rate: UInt64) {
        responseBody = .held
        maxBodyBytes = 0
        maxRate = rate
        acceptedEncodings = .these("identity")
        let fields = Headers(headers)
        var block = HeaderBlock()
        for field in fields where !Self.isOurs(field.name, question) { block.append(field.name, field.value) }
        if let (name, value) = question.complete?.condition { block.append(name, value) }
        if let range = question.range {
            block.append("Range", range)
            if let validator = question.validator { block.append("If-Range", validator.field) }
        }
        headers = block
    }

    private static func isOurs(_ name: String, _ question: DownloadMachine.Question) -> Bool {
        ["Range", "If-Range", "Accept-Encoding"].contains { equalNames($0, name) }
            || question.complete != nil
                && ["If-None-Match", "If-Modified-Since"].contains { equalNames($0, name) }
    }
}

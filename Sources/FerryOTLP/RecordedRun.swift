import Ferry

/// A run that has ended and waits for its export. It holds no response and no error, which could be large.
struct RecordedRun: Sendable {
    let span: RunSpan
    let info: RunInfo
    let end: UInt64
    let status: Int?
    /// The code of the error.
    let error: String?
    let message: String?
    let isFromCache: Bool

    init(_ span: RunSpan, _ info: RunInfo, _ outcome: RunOutcome) {
        self.span = span
        self.info = info
        end = max(wallClock(), span.start)
        status = outcome.status
        (error, message) =
            switch outcome {
            case .finished: (nil, nil)
            case .failed(let error): (error.code.label, error.message)
            case .cancelled: ("cancelled", nil)
            }
        if case .finished(_, isFromCache: true) = outcome { isFromCache = true } else { isFromCache = false }
    }

    /// The run's span, followed by those of its attempts, according to the semantic conventions for HTTP clients.
    var spans: [OTLPSpan] {
        [run] + span.attempts.enumerated().map { attempt($1, number: $0) }
    }

    private var run: OTLPSpan {
        var attributes = [OTLPAttribute("ferry.run.id", Int(truncatingIfNeeded: info.id))]
        if let method = info.method { attributes.append(OTLPAttribute("http.request.method", method.rawValue)) }
        attributes.append(OTLPAttribute("url.full", info.url))
        if let tag = info.tag { attributes.append(OTLPAttribute("ferry.run.tag", tag)) }
        if isFromCache { attributes.append(OTLPAttribute("ferry.run.from_cache", true)) }
        if let status { attributes.append(OTLPAttribute("http.response.status_code", status)) }
        if let error { attributes.append(OTLPAttribute("error.type", error)) }
        return OTLPSpan(
            traceId: span.context.traceID.description, spanId: TraceContext.digits(of: span.context.spanID),
            parentSpanId: span.parent == 0 ? "" : TraceContext.digits(of: span.parent), traceState: state,
            flags: Int(span.context.flags), name: info.tag ?? info.method?.rawValue ?? "run", kind: .internal,
            startTimeUnixNano: String(span.start), endTimeUnixNano: String(end), attributes: attributes,
            status: OTLPSpan.Status(code: error == nil ? 0 : 2, message: message))
    }

    private var state: String? { span.context.state.isEmpty ? nil : span.context.state }

    private func attempt(_ attempt: RunSpan.Attempt, number: Int) -> OTLPSpan {
        var attributes = [
            OTLPAttribute("http.request.method", attempt.method), OTLPAttribute("url.full", attempt.shownURL),
        ]
        attributes += OTLPAttribute.server(attempt.authority, isSecure: attempt.url.hasPrefix("https:"))
        if number > 0 { attributes.append(OTLPAttribute("http.request.resend_count", number)) }
        if attempt.status != 0 { attributes.append(OTLPAttribute("http.response.status_code", attempt.status)) }
        if !attempt.peer.isEmpty {
            attributes.append(OTLPAttribute("network.peer.address", attempt.peer))
            attributes.append(OTLPAttribute("network.peer.port", attempt.peerPort))
        }
        switch attempt.httpVersion {
        case 10: attributes.append(OTLPAttribute("network.protocol.version", "1.0"))
        case 11: attributes.append(OTLPAttribute("network.protocol.version", "1.1"))
        case 20: attributes.append(OTLPAttribute("network.protocol.version", "2"))
        default: break
        }
        // An attempt without a response was active when its run ended.
        let failure =
            attempt.failureLabel ?? (attempt.end == 0 ? error ?? "unknown" : nil)
            ?? (attempt.status >= 400 ? String(attempt.status) : nil)
        if let failure { attributes.append(OTLPAttribute("error.type", failure)) }
        return OTLPSpan(
            traceId: span.context.traceID.description, spanId: TraceContext.digits(of: attempt.id),
            parentSpanId: TraceContext.digits(of: span.context.spanID), traceState: state,
            flags: Int(span.context.flags),
            name: attempt.method, kind: .client, startTimeUnixNano: String(attempt.start),
            endTimeUnixNano: String(attempt.end == 0 ? max(end, attempt.start) : attempt.end), attributes: attributes,
            status: OTLPSpan.Status(code: failure == nil ? 0 : 2))
    }
}

/// The runs that wait for their export, oldest first, up to a maximum number.
struct RecordedRuns {
    private var runs: [RecordedRun] = []
    private let most: Int
    /// The number of runs that did not fit.
    private(set) var dropped: UInt64 = 0

    init(most: Int) { self.most = max(most, 1) }

    var count: Int { runs.count }

    /// Returns whether the queue is half full: then the runs should be exported soon.
    mutating func append(_ run: RecordedRun) -> Bool {
        if runs.count >= most {
            dropped += 1
            return false
        }
        runs.append(run)
        return runs.count == most / 2 + most % 2
    }

    mutating func take(_ count: Int) -> [RecordedRun] {
        let taken = Array(runs.prefix(max(count, 1)))
        runs.removeFirst(taken.count)
        return taken
    }

    /// Drops all of them.
    mutating func drop() -> Int {
        defer { runs = [] }
        return runs.count
    }
}

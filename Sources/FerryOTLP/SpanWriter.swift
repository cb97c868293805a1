import Ferry
import FerryJSON
import FoundationEssentials

/// Writes the spans of runs as JSON of OTLP 1.x, directly into a buffer. In this format 64-bit numbers are strings and
/// ids are hexadecimal (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
struct SpanWriter: ~Copyable {
    private var text = TextBuffer(capacity: 1 << 16)
    /// The number of spans so far.
    private(set) var count = 0
    /// The server of the last attempt, and the beginning of its URLs: a service asks few servers, and to take a URL
    /// apart costs a third of a span.
    private var last: (origin: String, host: String, port: Int) = ("", "", 0)

    /// `resource` is the JSON of an OTLP resource.
    init(resource: [UInt8]) {
        text.append(#"{"resourceSpans":[{"resource":"#)
        resource.withUnsafeBufferPointer { text.append($0) }
        text.append(#","scopeSpans":[{"scope":{"name":"ferry"},"spans":["#)
    }

    deinit { text.deallocate() }

    /// Ends the message and returns it. Must be called once, after the last span.
    mutating func finish() -> Data {
        text.append("]}]}]}")
        return text.data()
    }

    /// Adds the span of a run, followed by those of its attempts, by the semantic conventions for HTTP clients.
    mutating func append(_ run: RecordedRun) {
        let url = run.info.url
        appendRun(run, url)
        for (number, attempt) in run.span.attempts.enumerated() {
            // Redacting a URL costs more than the rest of a span, so an attempt uses the run's if it is the same.
            append(attempt, number: number, of: run, run.info.isAbout(attempt.url) ? url : attempt.shownURL)
        }
    }

    private mutating func appendRun(_ run: RecordedRun, _ url: String) {
        let (span, info) = (run.span, run.info)
        begin(
            span.context, span.context.spanID, below: span.parent, info.tag ?? info.method?.rawValue ?? "run",
            kind: #","kind":1"#, from: span.start, to: run.end)
        number(#"{"key":"ferry.run.id","value":{"intValue":""#, Int64(truncatingIfNeeded: info.id))
        if let method = info.method { append(method: method.rawValue, Self.method) }
        string(Self.url, url)
        if let tag = info.tag { string(#",{"key":"ferry.run.tag","value":{"stringValue":"#, tag) }
        if run.isFromCache { text.append(#",{"key":"ferry.run.from_cache","value":{"boolValue":true}}"#) }
        if let status = run.status { number(Self.status, Int64(status)) }
        if let error = run.error { string(Self.error, error) }
        end(isFailure: run.error != nil, run.message)
    }

    private mutating func append(_ attempt: RunSpan.Attempt, number index: Int, of run: RecordedRun, _ url: String) {
        let context = run.span.context
        begin(
            context, attempt.id, below: context.spanID, OTLPMethod.isKnown(attempt.method) ? attempt.method : "HTTP",
            kind: #","kind":3"#, from: attempt.start,
            to: attempt.end == 0 ? max(run.end, attempt.start) : attempt.end)
        append(method: attempt.method, #"{"key":"http.request.method","value":{"stringValue":"#)
        string(Self.url, url)
        if !attempt.begins(with: last.origin) {
            let server = attempt.server
            last = (attempt.origin, server.host, server.port)
        }
        string(#",{"key":"server.address","value":{"stringValue":"#, last.host)
        number(#",{"key":"server.port","value":{"intValue":""#, Int64(last.port))
        if index > 0 { number(#",{"key":"http.request.resend_count","value":{"intValue":""#, Int64(index)) }
        if attempt.status != 0 { number(Self.status, Int64(attempt.status)) }
        if !attempt.peer.isEmpty {
            string(#",{"key":"network.peer.address","value":{"stringValue":"#, attempt.peer)
            number(#",{"key":"network.peer.port","value":{"intValue":""#, Int64(attempt.peerPort))
        }
        switch attempt.httpVersion {
        case 10: string(Self.version, "1.0")
        case 11: string(Self.version, "1.1")
        case 20: string(Self.version, "2")
        default: break
        }
        // An attempt without a response was active when its run ended.
        let failure =
            attempt.failureLabel ?? (attempt.end == 0 ? run.error ?? "unknown" : nil)
            ?? (attempt.status >= 400 ? String(attempt.status) : nil)
        if let failure { string(Self.error, failure) }
        end(isFailure: failure != nil, nil)
    }

    private mutating func append(method: String, _ attribute: StaticString) {
        if OTLPMethod.isKnown(method) { return string(attribute, method) }
        string(attribute, OTLPMethod.other)
        string(#",{"key":"http.request.method_original","value":{"stringValue":"#, method)
    }

    // MARK: Parts

    private static var method: StaticString { #",{"key":"http.request.method","value":{"stringValue":"# }
    private static var url: StaticString { #",{"key":"url.full","value":{"stringValue":"# }
    private static var status: StaticString { #",{"key":"http.response.status_code","value":{"intValue":""# }
    private static var error: StaticString { #",{"key":"error.type","value":{"stringValue":"# }
    private static var version: StaticString { #",{"key":"network.protocol.version","value":{"stringValue":"# }

    /// Writes a span up to its first attribute.
    private mutating func begin(
        _ context: TraceContext, _ id: UInt64, below parent: UInt64, _ name: String, kind: StaticString,
        from start: UInt64, to end: UInt64
    ) {
        text.append(count == 0 ? #"{"traceId":""# : #",{"traceId":""#)
        count += 1
        text.append(count: 32) { context.writeTraceID(to: $0) }
        text.append(#"","spanId":""#)
        text.append(count: 16) { TraceContext.writeDigits(of: id, to: $0) }
        text.append(#"","parentSpanId":""#)
        if parent != 0 { text.append(count: 16) { TraceContext.writeDigits(of: parent, to: $0) } }
        text.append("\"")
        if !context.state.isEmpty {
            text.append(#","traceState":"#)
            text.append(string: context.state, escapingSlashes: false)
        }
        text.append(#","flags":"#)
        text.append(number: Int64(context.flags))
        text.append(#","name":"#)
        text.append(string: name, escapingSlashes: false)
        text.append(kind)
        text.append(#","startTimeUnixNano":""#)
        text.append(number: Int64(clamping: start))
        text.append(#"","endTimeUnixNano":""#)
        text.append(number: Int64(clamping: end))
        text.append(#"","attributes":["#)
    }

    private mutating func end(isFailure: Bool, _ message: String?) {
        guard isFailure else { return text.append(#"],"status":{"code":0}}"#) }
        text.append(#"],"status":{"code":2"#)
        if let message {
            text.append(#","message":"#)
            text.append(string: message, escapingSlashes: false)
        }
        text.append("}}")
    }

    /// Writes an attribute with a string. `head` is everything before the value.
    private mutating func string(_ head: StaticString, _ value: String) {
        text.append(head)
        text.append(string: value, escapingSlashes: false)
        text.append("}}")
    }

    /// Writes an attribute with a number. `head` is everything before the value, including its opening quotation mark.
    private mutating func number(_ head: StaticString, _ value: Int64) {
        text.append(head)
        text.append(number: value)
        text.append("\"}}")
    }
}

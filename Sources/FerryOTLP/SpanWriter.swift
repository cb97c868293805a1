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
        begin(
            run.span.context, run.span.context.spanID, below: run.span.parent,
            run.info.tag ?? run.info.method?.rawValue ?? "run", #","kind":1,"startTimeUnixNano":""#,
            from: run.span.start, to: run.end)
        number(#"","attributes":[{"key":"ferry.run.id","value":{"intValue":""#, Int64(truncatingIfNeeded: run.info.id))
        if let method = run.info.method {
            append(method: method.rawValue, #"}},{"key":"http.request.method","value":{"stringValue":"#)
        }
        string(Self.url, url)
        if let tag = run.info.tag { string(#"}},{"key":"ferry.run.tag","value":{"stringValue":"#, tag) }
        if run.isFromCache { text.append(#"}},{"key":"ferry.run.from_cache","value":{"boolValue":true"#) }
        if let status = run.status { number(Self.status, Int64(status)) }
        if let error = run.error { string(Self.error, error) }
        end(isFailure: run.error != nil, run.message)
    }

    private mutating func append(_ attempt: RunSpan.Attempt, number index: Int, of run: RecordedRun, _ url: String) {
        begin(
            run.span.context, attempt.id, below: run.span.context.spanID,
            OTLPMethod.isKnown(attempt.method) ? attempt.method : "HTTP", #","kind":3,"startTimeUnixNano":""#,
            from: attempt.start, to: attempt.end == 0 ? max(run.end, attempt.start) : attempt.end)
        append(method: attempt.method, #"","attributes":[{"key":"http.request.method","value":{"stringValue":"#)
        string(Self.url, url)
        if !attempt.begins(with: last.origin) {
            let server = attempt.server
            last = (attempt.origin, server.host, server.port)
        }
        string(#"}},{"key":"server.address","value":{"stringValue":"#, last.host)
        number(#"}},{"key":"server.port","value":{"intValue":""#, Int64(last.port))
        if index > 0 { number(#"}},{"key":"http.request.resend_count","value":{"intValue":""#, Int64(index)) }
        if attempt.status != 0 { number(Self.status, Int64(attempt.status)) }
        if !attempt.peer.isEmpty {
            string(#"}},{"key":"network.peer.address","value":{"stringValue":"#, attempt.peer)
            number(#"}},{"key":"network.peer.port","value":{"intValue":""#, Int64(attempt.peerPort))
        }
        switch attempt.httpVersion {
        case 10: text.append(#"}},{"key":"network.protocol.version","value":{"stringValue":"1.0""#)
        case 11: text.append(#"}},{"key":"network.protocol.version","value":{"stringValue":"1.1""#)
        case 20: text.append(#"}},{"key":"network.protocol.version","value":{"stringValue":"2""#)
        default: break
        }
        // An attempt without a response was active when its run ended.
        let failure =
            attempt.failureLabel ?? (attempt.end == 0 ? run.error ?? "unknown" : nil)
            ?? (attempt.status >= 400 ? String(attempt.status) : nil)
        if let failure { string(Self.error, failure) }
        end(isFailure: failure != nil, nil)
    }

    private mutating func append(method: String, _ head: StaticString) {
        if OTLPMethod.isKnown(method) { return string(head, method) }
        string(head, OTLPMethod.other)
        string(#"}},{"key":"http.request.method_original","value":{"stringValue":"#, method)
    }

    // MARK: Parts

    // The head of an attribute ends the attribute before it; the end of the span ends the last one.

    private static var url: StaticString { #"}},{"key":"url.full","value":{"stringValue":"# }
    private static var status: StaticString { #"}},{"key":"http.response.status_code","value":{"intValue":""# }
    private static var error: StaticString { #"}},{"key":"error.type","value":{"stringValue":"# }
    private static var spanID: StaticString { #"","spanId":""# }
    private static var parentID: StaticString { #"","parentSpanId":""# }
    private static var endTime: StaticString { #"","endTimeUnixNano":""# }

    /// Writes a span up to its end time. `kind` ends with the head of the start time. What has a known length is
    /// written as one part.
    private mutating func begin(
        _ context: TraceContext, _ id: UInt64, below parent: UInt64, _ name: String, _ kind: StaticString,
        from start: UInt64, to end: UInt64
    ) {
        let head: StaticString = count == 0 ? #"{"traceId":""# : #",{"traceId":""#
        count += 1
        let parentLength = parent == 0 ? 0 : 16
        let length =
            head.utf8CodeUnitCount + Self.spanID.utf8CodeUnitCount + Self.parentID.utf8CodeUnitCount + parentLength
        // 49 = the ids of trace and span, and a quotation mark.
        text.append(count: length + 49) { bytes in
            var part = FixedPart(bytes)
            part.append(head)
            context.writeTraceID(to: part.next(32))
            part.append(Self.spanID)
            TraceContext.writeDigits(of: id, to: part.next(16))
            part.append(Self.parentID)
            if parent != 0 { TraceContext.writeDigits(of: parent, to: part.next(16)) }
            part.append("\"")
        }
        if !context.state.isEmpty {
            text.append(#","traceState":"#)
            text.append(string: context.state, escapingSlashes: false)
        }
        text.append(context.isSampled ? #","flags":1,"name":"# : #","flags":0,"name":"#)
        text.append(string: name, escapingSlashes: false)
        let (first, last) = (UInt64(Int64(clamping: start)), UInt64(Int64(clamping: end)))
        let (firstLength, lastLength) = (FixedPart.length(of: first), FixedPart.length(of: last))
        let heads = kind.utf8CodeUnitCount + Self.endTime.utf8CodeUnitCount
        text.append(count: heads + firstLength + lastLength) { bytes in
            var part = FixedPart(bytes)
            part.append(kind)
            part.append(first, length: firstLength)
            part.append(Self.endTime)
            part.append(last, length: lastLength)
        }
    }

    /// Ends the last attribute and the span.
    private mutating func end(isFailure: Bool, _ message: String?) {
        guard isFailure else { return text.append(#"}}],"status":{"code":0}}"#) }
        text.append(#"}}],"status":{"code":2"#)
        if let message {
            text.append(#","message":"#)
            text.append(string: message, escapingSlashes: false)
        }
        text.append("}}")
    }

    /// Writes an attribute with a string.
    private mutating func string(_ head: StaticString, _ value: String) {
        text.append(head)
        text.append(string: value, escapingSlashes: false)
    }

    /// Writes an attribute with a number. The head includes the opening quotation mark.
    private mutating func number(_ head: StaticString, _ value: Int64) {
        if value < 0 {
            text.append(head)
            text.append(number: value)
            return text.append("\"")
        }
        let number = UInt64(value)
        let length = FixedPart.length(of: number)
        text.append(count: head.utf8CodeUnitCount + length + 1) { bytes in
            var part = FixedPart(bytes)
            part.append(head)
            part.append(number, length: length)
            part.append("\"")
        }
    }
}

/// A part of a text, written from its beginning into memory that has its length.
private struct FixedPart {
    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    init(_ bytes: UnsafeMutableBufferPointer<UInt8>) { self.bytes = bytes }

    /// The memory of the next bytes, which the caller writes.
    mutating func next(_ length: Int) -> UnsafeMutableBufferPointer<UInt8> {
        defer { count += length }
        return UnsafeMutableBufferPointer(rebasing: bytes[count..<(count + length)])
    }

    mutating func append(_ text: StaticString) {
        let length = text.utf8CodeUnitCount
        next(length).baseAddress!.update(from: text.utf8Start, count: length)
    }

    /// Appends a number of this length, four digits at a time: each of its divisions waits for the one before.
    mutating func append(_ number: UInt64, length: Int) {
        let digits = next(length)
        var (rest, place) = (number, length)
        while rest >= 10_000 {
            let four = UInt32(truncatingIfNeeded: rest % 10_000)
            rest /= 10_000
            place -= 4
            Self.write(four / 100, to: digits, at: place)
            Self.write(four % 100, to: digits, at: place + 2)
        }
        var left = UInt32(truncatingIfNeeded: rest)
        if left >= 100 {
            place -= 2
            Self.write(left % 100, to: digits, at: place)
            left /= 100
        }
        if left >= 10 {
            Self.write(left, to: digits, at: place - 2)
        } else {
            digits[place - 1] = UInt8(truncatingIfNeeded: 0x30 + left)
        }
    }

    /// Two digits.
    @inline(__always)
    private static func write(_ two: UInt32, to digits: UnsafeMutableBufferPointer<UInt8>, at place: Int) {
        digits[place] = UInt8(truncatingIfNeeded: 0x30 + two / 10)
        digits[place + 1] = UInt8(truncatingIfNeeded: 0x30 + two % 10)
    }

    /// The number of digits of a number. Times have 19.
    static func length(of number: UInt64) -> Int {
        if number >= 1_000_000_000_000_000_000 { return number >= 10_000_000_000_000_000_000 ? 20 : 19 }
        var (length, limit) = (1, UInt64(10))
        while number >= limit {
            length += 1
            limit *= 10
        }
        return length
    }
}

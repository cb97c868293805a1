import FerrySynchronization
import FerryTransport

/// The position of a request in a distributed trace: the W3C's `traceparent` and `tracestate`.
///
/// A service binds the context of the request that it serves. Every run that starts in that task or thread sends a
/// child of it:
///
///     let context = TraceContext(traceparent: incoming["traceparent"], tracestate: incoming["tracestate"])
///         ?? TraceContext()
///     let prices = try await TraceContext.$current.withValue(context) {
///         try await agent.get("/prices")
///     }
///
/// Each attempt of a run (a retry, a redirect) has its own span id below the same parent. The fields are not sent to
/// another origin than the run's, unless ``RedirectPolicy/keepsTraceContext`` is set. They are not sent either if the
/// request, the configuration or an adapter has set a `traceparent` field, or if ``Request/propagatesTrace`` is
/// `false`.
public struct TraceContext: Sendable, Hashable {
    /// The current context, of which runs send children. The default is `nil`: nothing is sent.
    @TaskLocal public static var current: TraceContext?

    /// One object, because every run of a task refers to its context.
    private final class Storage: Sendable {
        let traceID: ID128
        let spanID: UInt64
        let flags: UInt8
        let state: String

        init(_ traceID: ID128, _ spanID: UInt64, _ flags: UInt8, _ state: String) {
            (self.traceID, self.spanID, self.flags, self.state) = (traceID, spanID, flags, state)
        }
    }

    private let storage: Storage

    /// The id of the trace: 16 bytes, not all zero.
    public var traceID: ID128 { storage.traceID }
    /// The id of the span as a number; not zero.
    public var spanID: UInt64 { storage.spanID }
    /// The flags; only ``isSampled`` is defined.
    public var flags: UInt8 { storage.flags }
    /// The vendor-specific state as it is sent; empty if there is none.
    public var state: String { storage.state }

    /// A 16-byte id.
    public struct ID128: Sendable, Hashable {
        let high: UInt64
        let low: UInt64

        var isZero: Bool { high | low == 0 }
    }

    /// Whether the caller may have recorded the trace.
    public var isSampled: Bool { flags & 1 != 0 }

    /// Starts a new trace.
    public init(isSampled: Bool = true) {
        self.init(
            traceID: ID128(high: .random(in: 1 ... .max), low: .random(in: 1 ... .max)),
            spanID: .random(in: 1 ... .max), flags: isSampled ? 1 : 0, state: "")
    }

    private init(traceID: ID128, spanID: UInt64, flags: UInt8, state: String) {
        storage = Storage(traceID, spanID, flags, state)
    }

    /// Whether all parts are equal.
    public static func == (left: TraceContext, right: TraceContext) -> Bool {
        left.storage === right.storage
            || left.traceID == right.traceID && left.spanID == right.spanID && left.flags == right.flags
                && left.state == right.state
    }

    /// Feeds the ids to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(traceID)
        hasher.combine(spanID)
    }

    /// Parses the two fields of a request. `nil` if `traceparent` is missing or invalid. If `tracestate` is missing or
    /// invalid, the state is empty.
    ///
    /// For an unknown version, the parts that version 00 defines are read, as the standard requires (section 3.2.4).
    public init?(traceparent: String?, tracestate: String? = nil) {
        guard let traceparent, let parsed = Self.parse(traceparent) else { return nil }
        self.init(
            traceID: parsed.traceID, spanID: parsed.spanID, flags: parsed.flags & 1,
            state: tracestate.flatMap(Self.checkedState) ?? "")
    }

    /// A span below this one.
    public func child() -> TraceContext {
        TraceContext(traceID: traceID, spanID: SpanNumbers.next(), flags: flags, state: state)
    }

    /// Starts a new trace without a system call. It is sampled with this probability, decided by the last 8 bytes of
    /// its id, so that others who sample by the id decide the same.
    package static func begin(sampling fraction: Double) -> TraceContext {
        let (high, low, span) = SpanNumbers.nextTrace()
        let isSampled = fraction >= 1 || Double(low) < fraction * 0x1p64
        return TraceContext(
            traceID: ID128(high: high, low: low), spanID: span, flags: isSampled ? 1 : 0, state: "")
    }

    /// The value of the `traceparent` field, in version 00.
    public var traceparent: String {
        String(unsafeUninitializedCapacity: TraceField.count) { text in
            field(of: spanID).write(to: UnsafeMutableRawBufferPointer(text))
            return TraceField.count
        }
    }

    /// The field that names this span of the trace.
    fileprivate func field(of span: UInt64) -> TraceField {
        TraceField(high: traceID.high, low: traceID.low, span: span, isSampled: isSampled)
    }

    private static func write(_ number: UInt64, to text: UnsafeMutableBufferPointer<UInt8>, at start: Int) {
        TraceField.write(number, to: UnsafeMutableRawBufferPointer(text), at: start)
    }

    // MARK: Parsing

    private struct Parsed {
        let traceID: ID128
        let spanID: UInt64
        let flags: UInt8
    }

    private static func parse(_ text: String) -> Parsed? {
        var text = text
        return text.withUTF8 { text in
            guard text.count >= 55, let version = hexadecimal(text, 0..<2), version != 0xFF,
                // Version 00 ends there; a later one may continue after a dash.
                text.count == 55 || (version != 0 && text[55] == 0x2D),
                text[2] == 0x2D, text[35] == 0x2D, text[52] == 0x2D,
                let high = hexadecimal(text, 3..<19), let low = hexadecimal(text, 19..<35),
                let span = hexadecimal(text, 36..<52), let flags = hexadecimal(text, 53..<55),
                high | low != 0, span != 0
            else { return nil }
            return Parsed(traceID: ID128(high: high, low: low), spanID: span, flags: UInt8(flags))
        }
    }

    /// Lower case only, as the standard requires.
    private static func hexadecimal(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for byte in text[range] {
            switch byte {
            case 0x30...0x39: number = number << 4 | UInt64(byte - 0x30)
            case 0x61...0x66: number = number << 4 | UInt64(byte - 0x57)
            default: return nil
            }
        }
        return number
    }

    /// At most 32 members `key=value` in printable ASCII, and at most 512 bytes, which every vendor must propagate.
    /// `nil` for anything else: a state is propagated completely or not at all.
    private static func checkedState(_ text: String) -> String? {
        guard text.utf8.count <= 512, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 0x09 }) else {
            return nil
        }
        let members = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { member in member.filter { $0 != 0x20 && $0 != 0x09 } }
            .filter { !$0.isEmpty }
        guard members.count <= 32, members.allSatisfy({ $0.dropFirst().contains(UInt8(ascii: "=")) }) else {
            return nil
        }
        return members.isEmpty ? nil : text
    }
}

extension TraceContext.ID128: CustomStringConvertible {
    /// 32 lower-case hexadecimal digits.
    public var description: String { TraceContext.digits(of: high) + TraceContext.digits(of: low) }
}

extension TraceContext: CustomStringConvertible {
    /// The `traceparent` field.
    public var description: String { traceparent }

    /// 16 hexadecimal digits.
    package static func digits(of number: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { text in
            write(number, to: text, at: 0)
            return 16
        }
    }

    /// Writes the 16 digits of a number where they are wanted.
    package static func writeDigits(of number: UInt64, to text: UnsafeMutableBufferPointer<UInt8>) {
        write(number, to: text, at: 0)
    }

    /// Writes the 32 digits of the trace's id where they are wanted.
    package func writeTraceID(to text: UnsafeMutableBufferPointer<UInt8>) {
        Self.write(traceID.high, to: text, at: 0)
        Self.write(traceID.low, to: text, at: 16)
    }
}

/// Generates ids. The system's generator takes a system call for each, so this is a counter with a random start, mixed
/// so that all ids of a process differ and neighbours have nothing in common (SplitMix64).
private enum SpanNumbers {
    private static let counter = Atomic<UInt64>(.random(in: 0 ... .max))

    /// The low half of a trace's id says where the counter was. If the high half said nothing else, two processes would
    /// meet as easily as with ids of 64 bits.
    private static let key = UInt64.random(in: 0 ... .max)

    private static let step: UInt64 = 0x9E37_79B9_7F4A_7C15

    static func next() -> UInt64 { mixed(counter.wrappingAdd(step, ordering: .relaxed).newValue) }

    /// The halves of a trace's id and the id of its span, all at once, because all threads share the counter.
    static func nextTrace() -> (high: UInt64, low: UInt64, span: UInt64) {
        let last = counter.wrappingAdd(2 &* step, ordering: .relaxed).newValue
        // One half that is not zero is enough.
        return (scrambled(last ^ key), mixed(last), mixed(last &- step))
    }

    private static func mixed(_ position: UInt64) -> UInt64 {
        let number = scrambled(position)
        // Zero is not a valid id; it occurs once in the whole sequence.
        return number == 0 ? next() : number
    }

    /// Different for different positions.
    private static func scrambled(_ position: UInt64) -> UInt64 {
        var number = position
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        return number ^ number >> 31
    }
}

extension TraceContext {
    /// The id of a new span below this one.
    static func newSpan() -> UInt64 { SpanNumbers.next() }
}

extension BuiltRequest {
    /// Starts a new span before each attempt, if the run is traced or has a context, and adds its fields if servers may
    /// have them. An adapter or the configuration may have set them: two `traceparent` fields count as none (W3C Trace
    /// Context, 3.2).
    mutating func beginSpan(of watch: RunWatch?, isSent: Bool = true) {
        if let watch, let span = watch.span, span.isPropagated {
            let id = span.begin(transfer)
            let fields = span.numbering?.begin(transfer.method)
            guard isSent, watch.sendsTrace else { return }
            guard let fields else { return append(span.context, span: id) }
            let present = Headers(transfer.headers)
            // A context that the request has set is a whole: it has a state, or none.
            let hasOwn = present.contains("traceparent")
            for (name, value) in fields where !present.contains(name) && !(hasOwn && name == "tracestate") {
                transfer.headers.append(name, value)
            }
        } else if isSent, let trace {
            append(trace, span: TraceContext.newSpan())
        }
    }

    /// Adds the fields of a span of this trace, unless there is a context already.
    mutating func append(_ context: TraceContext, span: UInt64) {
        if transfer.headers.contains("traceparent") { return }
        transfer.trace = context.field(of: span)
        let state = context.state
        if !state.isEmpty, !transfer.headers.contains("tracestate") { transfer.headers.append("tracestate", state) }
    }
}

import CFerry

/// A `ferry_request` as a value, and the actions of its callbacks.
struct CoreRequest: Sendable {
    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// The length of the body that `onPull` provides; nil means an unknown length.
        case pull(UInt64?)
    }

    enum Answer: Sendable {
        case collect
        case stream
        case descriptor(Int32, offset: Int64 = -1)
    }

    struct Flags: OptionSet, Sendable {
        let rawValue: UInt32
        static let idempotent = Flags(rawValue: UInt32(FERRY_IDEMPOTENT))
        static let decode = Flags(rawValue: UInt32(FERRY_DECODE))
        static let notifyStart = Flags(rawValue: UInt32(FERRY_NOTIFY_START))
        static let notifyHead = Flags(rawValue: UInt32(FERRY_NOTIFY_HEAD))
        static let holdBody = Flags(rawValue: UInt32(FERRY_HOLD_BODY))
        static let publicOnly = Flags(rawValue: UInt32(FERRY_PUBLIC_ONLY))
        static let duplex = Flags(rawValue: UInt32(FERRY_DUPLEX))
        static let trailers = Flags(rawValue: UInt32(FERRY_TRAILERS))
        static let notifyInformational = Flags(rawValue: UInt32(FERRY_NOTIFY_INFORMATIONAL))
        static let unlimited = Flags(rawValue: UInt32(FERRY_UNLIMITED))
    }

    var url: [UInt8]
    var method: [UInt8]
    var headers: [(name: [UInt8], value: [UInt8])] = []
    var body = Body.none
    var answer = Answer.collect
    var priority = FERRY_NORMAL
    var flags: Flags = []
    var connect = 0
    var idle = 0
    var total = 0
    var deadline = 0
    var lowSpeedBytes = 0
    var lowSpeedTime = 0
    var maxHead = 0
    var maxBody = 0
    var maxRate = 0

    var extras: CoreExtras?

    /// The return value of `on_body`; nil is FERRY_CONTINUE. On the loop's thread.
    var onBody: (@Sendable ([UInt8]) -> Int)?
    /// The return value of `on_pull`, on the loop's thread.
    var onPull: (@Sendable (UnsafeMutableRawBufferPointer) -> Int)?
    /// The return value of `on_trailers`, on the loop's thread; nil is FERRY_ABORT.
    var onTrailers: (@Sendable (UnsafeMutableRawBufferPointer) -> Int)?
    /// Called on the loop's thread.
    var onStarted: (@Sendable () -> Void)?
    /// Called with the result, on the loop's thread.
    var onFinished: (@Sendable (CoreResult) -> Void)?

    init(_ method: String, _ url: String) {
        self.method = Array(method.utf8)
        self.url = Array(url.utf8)
    }

    /// Adds a field.
    mutating func add(_ name: String, _ value: String) {
        headers.append((Array(name.utf8), Array(value.utf8)))
    }

    func with(_ change: (inout CoreRequest) -> Void) -> CoreRequest {
        var copy = self
        change(&copy)
        return copy
    }

    private var packedHeaders: [UInt8] {
        var packed: [UInt8] = []
        for field in headers {
            withUnsafeBytes(of: UInt32(field.name.count)) { packed += $0 }
            withUnsafeBytes(of: UInt32(field.value.count)) { packed += $0 }
            packed += field.name
            packed += field.value
        }
        return packed
    }

    /// The C request; everything it points to is valid until `body` returns.
    func withCore<R>(id: UInt64, _ use: (UnsafePointer<ferry_request>) -> R) -> R {
        var core = ferry_request()
        core.id = id
        core.priority = UInt8(truncatingIfNeeded: priority)
        core.flags = flags.rawValue
        core.connect_ms = UInt32(connect)
        core.idle_ms = UInt32(idle)
        core.total_ms = UInt32(total)
        core.deadline_ms = UInt32(deadline)
        core.low_speed_bytes = UInt32(lowSpeedBytes)
        core.low_speed_ms = UInt32(lowSpeedTime)
        core.max_head = UInt32(maxHead)
        core.max_body = UInt64(maxBody)
        core.max_rate = UInt64(maxRate)
        switch answer {
        case .collect: core.response_kind = UInt8(FERRY_COLLECT)
        case .stream: core.response_kind = UInt8(FERRY_STREAM)
        case .descriptor(let descriptor, let offset):
            core.response_kind = UInt8(FERRY_DESCRIPTOR)
            core.fd = descriptor
            core.offset = offset
        }
        var bytes: [UInt8] = []
        switch body {
        case .none: core.body_kind = UInt8(FERRY_BODY_NONE)
        case .bytes(let given):
            bytes = given
            core.body_kind = UInt8(FERRY_BODY_BYTES)
            core.body_length = UInt64(given.count)
        case .pull(let length):
            core.body_kind = UInt8(FERRY_BODY_PULL)
            core.body_length = length ?? UInt64.max
        }
        return url.withUnsafeBytes { url in
            method.withUnsafeBytes { method in
                packedHeaders.withUnsafeBytes { headers in
                    bytes.withUnsafeBytes { body in
                        core.url = url.bindMemory(to: CChar.self).baseAddress
                        core.url_length = url.count
                        core.method = method.bindMemory(to: CChar.self).baseAddress
                        core.method_length = method.count
                        core.headers = headers.baseAddress
                        core.headers_length = headers.count
                        core.body = body.baseAddress
                        guard let extras else { return use(&core) }
                        return extras.withCore {
                            core.extras = $0
                            return use(&core)
                        }
                    }
                }
            }
        }
    }
}

package import FoundationEssentials

/// Names one transfer of a transport; unique among those not yet answered, and never 0. Its top byte is the number of
/// the loop that carries it (`Transporting.chooseLoop`), the rest is the caller's.
package typealias TransferID = UInt64

/// The waiting ring a transfer stands in.
package enum PriorityRing: UInt8, Sendable {
    case low = 0
    case normal = 1
    case high = 2
}

/// Where in a file a body goes.
package struct TransferSink: Sendable, Equatable {
    /// Stays the caller's, who must not close it before the result. It may block: threads of their own write to it.
    package var descriptor: Int32
    /// Of the first byte.
    package var offset: Int64
    /// More bytes than this are a fault, `bodyTooLarge`; 0 = as the request says.
    package var most: UInt64

    package init(descriptor: Int32, offset: Int64, most: UInt64 = 0) {
        self.descriptor = descriptor
        self.offset = offset
        self.most = most
    }
}

/// One transfer, complete: what the core needs to know, and nothing of the request it came from.
package struct TransferRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        case data(Data)
        /// Asked of the receiver's `fill` piece by piece; `nil` when the length is not known beforehand.
        case pull(length: UInt64?)
    }

    package enum ResponseBody: Sendable {
        /// Arrives with the result.
        case collect
        /// Arrives by the receiver's `receivedHead` and `receivedChunk`.
        case stream
        /// Likewise, but the body waits behind its head for a `resume`, or for a `write`.
        case held
    }

    /// All in milliseconds, 0 = none. `deadline` counts from the submit, the others from the start.
    package struct Timeouts: Sendable, Equatable {
        package var connect: UInt32 = 0
        package var idle: UInt32 = 0
        package var total: UInt32 = 0
        package var deadline: UInt32 = 0
        /// A fault when fewer bytes a second than this came over `lowSpeedTime`.
        package var lowSpeedBytes: UInt32 = 0
        package var lowSpeedTime: UInt32 = 0

        package init() {}
    }

    package var url: String
    package var method = "GET"
    package var headers = HeaderBlock()
    package var body = Body.none
    package var responseBody = ResponseBody.collect
    package var ring = PriorityRing.normal
    package var timeouts = Timeouts()
    /// Bytes of all heads together; 0 = the core's own bound of 64 KiB.
    package var maxHeadBytes: UInt32 = 0
    /// Bytes of the body after decoding; 0 = no bound.
    package var maxBodyBytes: UInt64 = 0
    /// Bytes received a second, on average; 0 = no bound.
    package var maxRate: UInt64 = 0
    /// May be sent again on a new connection when a kept one turns out to be dead (RFC 9110, 9.2.2).
    package var isIdempotent = true
    /// Whether `transferStarted` is called.
    package var reportsStart = false
    /// Connects to addresses of the public internet only; `FERRY_PUBLIC_ONLY` in CFerry.h says what that means.
    package var publicOnly = false
    /// What few requests say, so that copying the others stays cheap.
    var extras: Extras?

    package init(url: String) {
        self.url = url
    }
}

import FerryTransport

/// The time limits for the parts of a transfer; `nil` means no limit. The clocks start when the run leaves the queue.
public struct Timeouts: Sendable, Hashable {
    /// The limit for name lookup, connect and TLS handshake together. The default is `nil`.
    public var connect: Duration?
    /// The maximum time without a byte in either direction, and for a name lookup or a connect. The default is 60
    /// seconds. The clock stops while a body waits for its reader or its source. With HTTP/2 only bytes of the run's
    /// own stream count.
    public var idle: Duration?
    /// The limit for the whole exchange. The default is `nil`.
    public var total: Duration?
    /// The minimum rate. The default is `nil`.
    public var lowSpeed: LowSpeed?

    /// A minimum rate.
    public struct LowSpeed: Sendable, Hashable {
        /// A lower rate, measured over `time`, is an error.
        public var bytesPerSecond: Int
        /// The time for which the rate may be lower.
        public var time: Duration

        /// Creates a minimum rate: fewer than `bytesPerSecond` over `time` are an error.
        public init(bytesPerSecond: Int, time: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.time = time
        }
    }

    /// Creates timeouts. Parameters that are left out have their defaults.
    public init(
        connect: Duration? = nil, idle: Duration? = .seconds(60), total: Duration? = nil, lowSpeed: LowSpeed? = nil
    ) {
        self.connect = connect
        self.idle = idle
        self.total = total
        self.lowSpeed = lowSpeed
    }

    /// No limits.
    public static var none: Timeouts { Timeouts(idle: nil) }

    var packed: TransferRequest.Timeouts {
        var packed = TransferRequest.Timeouts()
        packed.connect = milliseconds(connect)
        packed.idle = milliseconds(idle)
        packed.total = milliseconds(total)
        if let lowSpeed {
            packed.lowSpeedBytes = UInt32(clamping: max(lowSpeed.bytesPerSecond, 0))
            packed.lowSpeedTime = milliseconds(lowSpeed.time)
        }
        return packed
    }
}

extension Duration {
    /// In whole microseconds, clamped to the range of the type.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}

/// Rounded up, and at least 1, because 0 means no limit to the core.
func milliseconds(_ duration: Duration?) -> UInt32 {
    guard let duration else { return 0 }
    let (seconds, attoseconds) = duration.components
    if seconds < 0 { return 1 }
    if seconds >= 4_294_967 { return .max }
    let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return UInt32(clamping: max(milliseconds, 1))
}

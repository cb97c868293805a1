package import FerryTransport

/// How long the parts of a run may take; `nil` is no bound. The clocks start when the run leaves the queue.
public struct Timeouts: Sendable, Hashable {
    /// For a name, a connection and a TLS handshake together. The default is none.
    public var connect: Duration?
    /// Without a byte in either direction; and for a name, and for a connection. The default is 60 seconds. It stands
    /// still while a body waits for whoever reads or gives it. Over HTTP/2 the bytes are those of the run's own stream.
    public var idle: Duration?
    /// For the whole exchange. The default is none.
    public var total: Duration?
    /// A rate that must be kept up. The default is none.
    public var lowSpeed: LowSpeed?

    /// A rate that must be kept up.
    public struct LowSpeed: Sendable, Hashable {
        /// Fewer than this, measured over `time`, is a fault.
        public var bytesPerSecond: Int
        /// How long it may stay below.
        public var time: Duration

        /// Fewer than `bytesPerSecond` over `time` is a fault.
        public init(bytesPerSecond: Int, time: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.time = time
        }
    }

    /// Timeouts; what is left out has its default.
    public init(
        connect: Duration? = nil, idle: Duration? = .seconds(60), total: Duration? = nil, lowSpeed: LowSpeed? = nil
    ) {
        self.connect = connect
        self.idle = idle
        self.total = total
        self.lowSpeed = lowSpeed
    }

    /// No bound at all.
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

/// Which of the waiting runs go first. A steady stream of high ones never starves the low ones.
public enum RequestPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// After the others.
    case low = -4
    /// The default.
    case normal = 0
    /// Before the others.
    case high = 4

    /// By urgency.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }

    package var ring: PriorityRing {
        switch self {
        case .low: .low
        case .normal: .normal
        case .high: .high
        }
    }
}

extension Duration {
    /// Cut to whole ones, and to what can be counted.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}

/// Rounded up, at least 1: 0 means no bound to the core.
func milliseconds(_ duration: Duration?) -> UInt32 {
    guard let duration else { return 0 }
    let (seconds, attoseconds) = duration.components
    if seconds < 0 { return 1 }
    if seconds >= 4_294_967 { return .max }
    let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return UInt32(clamping: max(milliseconds, 1))
}

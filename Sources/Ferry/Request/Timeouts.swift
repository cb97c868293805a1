import FerryTransport

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

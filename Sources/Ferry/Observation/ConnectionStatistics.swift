import FerryTransport

/// The connections of one origin: one scheme, host and port. Connections through a proxy count for the origin that they
/// lead to.
///
/// Ferry's own engine reports all members. For libcurl's connections
/// ``idle``, ``failed``, ``waitingTime`` and the close reasons are unknown, ``pending`` ends when libcurl takes the
/// exchange, and connections to a Unix socket are not counted.
public struct ConnectionStatistics: Sendable, Hashable {
    /// Open connections.
    public internal(set) var open: UInt64 = 0
    /// Open connections without an exchange.
    public internal(set) var idle: UInt64 = 0
    /// Exchanges that wait for a connection: in the queue, for a name lookup, or for the connection to open.
    public internal(set) var pending: UInt64 = 0
    /// Connections opened: the sum of ``open`` and all of ``closed``.
    public internal(set) var opened: UInt64 = 0
    /// Exchanges over a reused connection.
    public internal(set) var reused: UInt64 = 0
    /// Connections that could not be opened. A connection whose TLS handshake fails counts as opened and as closed with
    /// an error.
    public internal(set) var failed: UInt64 = 0
    /// Closed connections by reason.
    public internal(set) var closed: [ConnectionCloseReason: UInt64] = [:]
    /// The time that all exchanges together have waited for a connection, from their start.
    public internal(set) var waitingTime: Duration = .zero
}

/// Why a connection was closed.
public enum ConnectionCloseReason: String, Sendable, Hashable, CaseIterable {
    /// It exceeded ``NetworkConfiguration/connectionLifetime``.
    case lifetime
    /// It was idle for ``NetworkConfiguration/idleConnectionTime``.
    case idle
    /// The server closed it, or announced it in a response.
    case server
    /// It failed, or the server sent something invalid.
    case error
    /// Unsolicited bytes arrived on it.
    case poisoned
    /// It was closed to make room for others.
    case evicted
    /// Its run was cancelled or timed out before the response was complete.
    case cancelled
    /// The request had `Connection: close`.
    case request
    /// The agent was shut down.
    case shutdown
    /// libcurl closed it without reporting the reason.
    case unknown
}

extension ConnectionStatistics {
    init(_ from: OriginFigures) {
        open = from.open
        idle = from.idle
        pending = from.pending
        opened = from.opened
        reused = from.reused
        failed = from.failed
        waitingTime = .microseconds(Int64(clamping: from.waited))
        for cause in CloseCause.allCases where from.closed[cause.rawValue] > 0 {
            closed[ConnectionCloseReason(cause)] = from.closed[cause.rawValue]
        }
    }
}

extension ConnectionCloseReason {
    fileprivate init(_ cause: CloseCause) {
        self =
            switch cause {
            case .error: .error
            case .lifetime: .lifetime
            case .idle: .idle
            case .server: .server
            case .poisoned: .poisoned
            case .evicted: .evicted
            case .cancelled: .cancelled
            case .request: .request
            case .shutdown: .shutdown
            case .unknown: .unknown
            }
    }
}

extension AgentStatistics {
    /// The connections of each origin, and the name lookups, in the text format of Prometheus (version 0.0.4). Removed
    /// origins are summed up as `other`.
    public func prometheusText() -> String {
        var text = PrometheusText()
        let all = origins.sorted { $0.key < $1.key } + [(key: "other", value: forgottenOrigins)]
        for (name, help, path) in Self.families {
            text.family(name, name.hasSuffix("_total") ? .counter : .gauge, help)
            for (origin, one) in all { text.sample(one[keyPath: path], ("origin", origin)) }
        }
        text.family("ferry_connections_closed_total", .counter, "Connections closed, by reason.")
        for (origin, one) in all {
            for (reason, count) in one.closed.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                text.sample(count, ("origin", origin), ("reason", reason.rawValue))
            }
        }
        text.family("ferry_connection_wait_seconds_total", .counter, "Time that exchanges waited for a connection.")
        for (origin, one) in all {
            text.seconds(UInt64(clamping: one.waitingTime.microseconds), ("origin", origin))
        }
        text.family("ferry_lookups_total", .counter, "Name lookups.")
        text.sample(lookups)
        text.family(
            "ferry_lookup_refresh_faults_total", .counter,
            "Lookups that failed for a name whose old addresses stayed in use.")
        text.sample(refreshFaults)
        return text.text
    }

    private static var families: [(String, String, KeyPath<ConnectionStatistics, UInt64>)] {
        [
            ("ferry_connections_open", "Open connections.", \.open),
            ("ferry_connections_idle", "Open connections without an exchange.", \.idle),
            ("ferry_connections_pending", "Exchanges that wait for a connection.", \.pending),
            ("ferry_connections_opened_total", "Connections opened.", \.opened),
            ("ferry_connections_reused_total", "Exchanges over a reused connection.", \.reused),
            ("ferry_connections_failed_total", "Connections that could not be opened.", \.failed),
        ]
    }
}

internal import CFerry
import Glibc
import Synchronization

/// Carries transfers with the C core, on one or more event loops.
///
/// An id belongs to one event loop for its whole life: the top byte is the number of the loop, so that a cancel finds
/// it without a table.
package final class Transport: Transporting {
    private let loops: [Loop]
    private let jar: CookieJar?
    private let turn = Atomic<UInt>(0)

    package init(_ configuration: TransportConfiguration = .init()) throws(TransferFailure) {
        // The limits apply to all event loops together; each has at least one.
        let (most, mostPerHost) = (max(1, configuration.maxTransfers), max(1, configuration.maxTransfersPerHost))
        let count = min(max(1, configuration.eventLoopCount), 256, most)
        let jar = configuration.keepsCookies ? try CookieJar() : nil
        var loops: [Loop] = []
        for index in 0..<count {
            loops.append(
                try Loop(
                    configuration, maxTransfers: Self.share(of: most, index, count),
                    maxPerHost: max(1, Self.share(of: mostPerHost, index, count)), jar: jar))
        }
        self.loops = loops
        self.jar = jar
    }

    /// The share of one of several event loops.
    private static func share(of whole: Int, _ index: Int, _ count: Int) -> Int {
        whole / count + (index < whole % count ? 1 : 0)
    }

    package var cookies: [TransferCookie] { jar?.cookies ?? [] }
    package var hasCookies: Bool { jar.map { !$0.isEmpty } ?? false }
    package func setCookie(_ cookie: TransferCookie) { jar?.set(cookie) }
    package func removeCookies() { jar?.removeAll() }

    package func attach(_ receiver: any TransferReceiver) {
        for loop in loops { loop.context.attach(receiver) }
    }

    package func chooseLoop() -> UInt8 {
        if loops.count == 1 { return 0 }
        if let current = Loop.currentContext, let index = loops.firstIndex(where: { $0.context === current }) {
            return UInt8(index)
        }
        return UInt8(turn.wrappingAdd(1, ordering: .relaxed).oldValue % UInt(loops.count))
    }

    private func loop(of id: TransferID) -> Loop {
        loops[Int(id >> 56)]
    }

    package func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        try loop(of: id).submit(request, id: id)
    }

    package func cancel(_ id: TransferID) { loop(of: id).cancel(id) }
    package func resume(_ id: TransferID) { loop(of: id).resume(id) }
    package func resumeSending(_ id: TransferID) { loop(of: id).resumeSending(id) }
    package func pause(_ id: TransferID) { loop(of: id).pause(id) }
    package func write(_ id: TransferID, to sink: TransferSink) { loop(of: id).write(id, to: sink) }
    package func setRing(_ ring: PriorityRing, of id: TransferID) { loop(of: id).setRing(ring, of: id) }

    package func shutdown() {
        for loop in loops { loop.stop() }
    }

    package func nextExecutor() -> (any TaskExecutor)? {
        let index = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return loops[Int(index % UInt(loops.count))].context.executor
    }

    package var clocks: [LoopClock] { loops.map(\.context.clock) }

    package var statistics: TransportStatistics {
        var sum = TransportStatistics()
        for loop in loops { sum.add(loop.statistics) }
        return sum
    }
}

extension TransportStatistics {
    fileprivate mutating func add(_ other: TransportStatistics) {
        waiting += other.waiting
        resolving += other.resolving
        running += other.running
        sockets += other.sockets
        handles += other.handles
        submitted += other.submitted
        finished += other.finished
        connectionsOpened += other.connectionsOpened
        lookups += other.lookups
        refreshFaults += other.refreshFaults
        guardedConnections += other.guardedConnections
        turns += other.turns
        longestTurn = max(longestTurn, other.longestTurn)
        trustRenewals += other.trustRenewals
        trustFaults += other.trustFaults
        pastOrigins.add(other.pastOrigins)
        origins.merge(other.origins) { own, others in
            var sum = own
            sum.add(others)
            return sum
        }
    }
}

/// The configuration of a transport, which is fixed for its life.
package struct TransportConfiguration: Sendable, Equatable {
    /// The number of event loops, each with its own thread and connections. The default is 1.
    package var eventLoopCount = 1
    /// The maximum number of active transfers on all event loops. The default is 1,024.
    package var maxTransfers = 1024
    /// The maximum number of active transfers per scheme, host and port on all event loops. The default is 64.
    package var maxTransfersPerHost = 64
    /// For HTTP/2; the maximum is 100.
    package var maxStreamsPerConnection: UInt32 = 100
    /// The maximum idle time of a connection in milliseconds. The default is 60,000.
    package var idleConnectionTime: UInt32 = 60_000
    /// The maximum age of a reused connection in milliseconds; 0 means no limit. The default is 600,000.
    package var connectionLifetime: UInt32 = 600_000
    /// The time without a byte after which the system probes a connection, in milliseconds; 0 means never.
    package var keepAliveTime: UInt32 = 0
    /// A PEM file of trusted authorities; `nil` means the system's.
    package var authorityFile: String?
    /// Pins as `sha256//BASE64`; the server's key must match one of them.
    package var pinnedKeys: [String] = []
    /// Whether chain and name are not verified.
    package var isInsecure = false
    /// In PEM; without a key file the certificate's file contains the key.
    package var clientCertificateFile: String?
    package var clientKeyFile: String?
    package var clientKeyPassword: String?
    /// The default is 1.2.
    package var minimumTLSVersion = TLSVersion.v12
    /// The default is `never`.
    package var http2 = HTTP2.never
    /// The default is ``Engine/standard``.
    package var engine = Engine.standard
    /// Whether one cookie jar is used for all event loops. The default is `false`: cookies are neither stored nor sent.
    package var keepsCookies = false
    /// The path of the Unix socket to which every connection goes; `nil` for none.
    package var unixSocket: String?
    /// The addresses to use instead of lookups.
    package var hostOverrides: [HostOverride] = []
    /// How the native engine chooses among several addresses. The default is `ordered`.
    package var addressSelection = AddressSelection.ordered
    /// The number of unused connections of the native engine to keep ready for each host in use, per event loop. The
    /// default is 0.
    package var minimumIdle: UInt32 = 0
    package var userAgent: String?
    /// The `Accept-Encoding` field; `nil` sends none.
    package var acceptedEncodings: String?

    package enum AddressSelection: UInt8, Sendable {
        case ordered = 0
        case roundRobin
        case leastRequests
    }

    /// The addresses of a host, without a lookup.
    package struct HostOverride: Sendable, Equatable {
        package var name: String
        package var port: UInt16
        /// In the form of URLs, with IPv6 in brackets.
        package var addresses: [String]

        package init(name: String, port: UInt16, addresses: [String]) {
            self.name = name
            self.port = port
            self.addresses = addresses
        }
    }

    package enum TLSVersion: UInt8, Sendable {
        case v12 = 0
        case v13
    }

    package enum HTTP2: UInt8, Sendable {
        case never = 0
        /// Over TLS, if the server agrees (ALPN).
        case negotiated
        /// With every server, without negotiation.
        case priorKnowledge
    }

    package enum Engine: UInt8, Sendable {
        /// The native HTTP/1.1 engine, for the requests that it supports.
        case http1 = 1
        case libcurl

        /// The engine that the environment variable `FERRY_ENGINE` names, `automatic` or `libcurl`; without it, the
        /// native one. It is read once, so that all agents of a process have the same default.
        package static let standard: Engine = engine(named: getenv("FERRY_ENGINE").map { String(cString: $0) })

        package static func engine(named name: String?) -> Engine {
            name == "libcurl" ? .libcurl : .http1
        }
    }

    package init() {}
}

internal import CFerry
import FerrySynchronization
import Glibc

/// Carries transfers with the C core, on one or more loops.
///
/// An id belongs to one loop for its whole life: its top byte is the loop's number, so a cancel finds the loop without
/// a table.
package final class Transport: Transporting {
    private let loops: [Loop]
    private let jar: CookieJar?
    private let turn = Atomic<UInt>(0)

    package init(_ configuration: TransportConfiguration = .init()) throws(TransferFailure) {
        // Limits apply to all loops together, but each has at least one.
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

    /// The share of one loop in a total.
    private static func share(of whole: Int, _ index: Int, _ count: Int) -> Int {
        whole / count + (index < whole % count ? 1 : 0)
    }

    package var cookies: [TransferCookie] { jar?.cookies ?? [] }
    package var hasCookies: Bool { jar.map { !$0.isEmpty } ?? false }
    package var cookieAdditions: UInt64 { jar?.additions ?? 0 }
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

/// The configuration of a transport; fixed for its life.
package struct TransportConfiguration: Sendable, Equatable {
    /// The number of threads, each with a libuv loop and its own connections. The default is 1.
    package var eventLoopCount = 1
    /// The maximum number of running transfers, over all loops. The default is 1,024.
    package var maxTransfers = 1024
    /// The maximum number of these for one scheme, host and port, over all loops. The default is 64.
    package var maxTransfersPerHost = 64
    /// The maximum number of streams on an HTTP/2 connection. At most 100, the default.
    package var maxStreamsPerConnection: UInt32 = 100
    /// How long an idle connection is kept, in milliseconds. The default is 60,000.
    package var idleConnectionTime: UInt32 = 60_000
    /// The age in milliseconds after which a connection is not used again; 0 is no limit. The default is 600,000.
    package var connectionLifetime: UInt32 = 600_000
    /// The time in milliseconds without a byte after which the system probes the peer; 0 means never, the default.
    package var keepAliveTime: UInt32 = 0
    /// A PEM bundle of trusted authorities; `nil`, the default, uses the system's.
    package var authorityFile: String?
    /// Pins, `sha256//BASE64`: the server's key must match one of them. The default is none.
    package var pinnedKeys: [String] = []
    /// Whether to skip verifying the chain and the name. The default is `false`.
    package var isInsecure = false
    /// The client certificate in PEM. Without a key file, this file must hold the key.
    package var clientCertificateFile: String?
    package var clientKeyFile: String?
    package var clientKeyPassword: String?
    /// The minimum version of TLS. The default is 1.2.
    package var minimumTLSVersion = TLSVersion.v12
    /// The use of HTTP/2. The default is `never`.
    package var http2 = HTTP2.never
    /// The engine that carries transfers. The default is ``Engine/standard``.
    package var engine = Engine.standard
    /// Whether all loops share a cookie jar. The default is `false`: cookies are neither stored nor sent.
    package var keepsCookies = false
    /// The path of the local socket that every connection goes to; `nil`, the default, for none.
    package var unixSocket: String?
    /// Addresses that replace those of names. The default is none.
    package var hostOverrides: [HostOverride] = []
    /// How the native engine chooses between several addresses. The default is `ordered`.
    package var addressSelection = AddressSelection.ordered
    /// The number of idle connections that the native engine keeps to each host in use, for each loop. The default is
    /// 0.
    package var minimumIdle: UInt32 = 0
    package var userAgent: String?
    /// The `Accept-Encoding` to send; `nil` sends none.
    package var acceptedEncodings: String?

    package enum AddressSelection: UInt8, Sendable {
        case ordered = 0
        case roundRobin
        case leastRequests
    }

    /// The addresses of a host, used instead of a lookup.
    package struct HostOverride: Sendable, Equatable {
        package var name: String
        package var port: UInt16
        /// The addresses in the form of a URL, IPv6 in brackets.
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
        /// Under TLS, if the server agrees (ALPN).
        case negotiated
        /// Always, without negotiation.
        case priorKnowledge
    }

    package enum Engine: UInt8, Sendable {
        /// The native engine, for the transfers that it can carry.
        case http1 = 1
        case libcurl

        /// The engine named by the environment variable `FERRY_ENGINE`, `automatic` or `libcurl`; otherwise the native
        /// one. It is read once, so that all agents of a process have the same default.
        package static let standard: Engine = engine(named: getenv("FERRY_ENGINE").map { String(cString: $0) })

        package static func engine(named name: String?) -> Engine {
            name == "libcurl" ? .libcurl : .http1
        }
    }

    package init() {}
}

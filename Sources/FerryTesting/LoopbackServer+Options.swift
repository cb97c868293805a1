internal import CLoopback

extension LoopbackServer {
    /// How a server is set up; complete by default.
    public struct Options: Sendable {
        /// Whether connections are accepted.
        public enum Accepting: Sendable {
            /// All of them.
            case all
            /// None, and its backlog is full: connects hang until they time out.
            case none
            /// None, and nobody listens on the port, which is kept from others: connects are refused.
            case refused
        }

        /// The address to listen on: an IPv4 or IPv6 address, or the path of a Unix socket, which must not be there and
        /// is left there. The default is 127.0.0.1.
        public var address = "127.0.0.1"
        /// The port to listen on, 0 for any free one. The default is 0.
        public var port: UInt16 = 0
        /// Speaks TLS with this certificate. The default is nil: plain text.
        public var certificate: ServerCertificate?
        /// Demands a certificate of clients, one that the authority of ``certificate`` has signed. The default is
        /// `false`.
        public var demandsClientCertificate = false
        /// The versions of TLS that are spoken, 12 for 1.2 and 13 for 1.3. The default is both.
        public var tlsVersions = 12...13
        /// What ALPN agrees to, in order of preference. `h2` is agreed to but not spoken: a script has to.
        /// The default is `http/1.1`.
        public var applicationProtocols = ["http/1.1"]
        /// Whether connections are accepted. The default is all.
        public var accepting = Accepting.all
        /// How many requests ``LoopbackServer/requests`` keeps, the latest; 0 keeps none, as benchmarks want it.
        /// The default is 1,000.
        public var recordedRequests = 1_000
        /// How many bytes of each body are kept with a recorded request. The default is 64 KiB.
        public var recordedBodyBytes = 65_536
        /// How many bytes of a body a handler or `/echo` may be given; more is answered with 413.
        /// The default is 64 MiB.
        public var maximumBodyBytes = 64 * 1_024 * 1_024

        /// Makes options that are the defaults.
        public init() {}

        /// Makes options of a server that speaks TLS.
        public init(certificate: ServerCertificate) {
            self.certificate = certificate
        }
    }
}

extension LoopbackServer.Options.Accepting {
    var code: Int32 {
        switch self {
        case .all: Int32(LOOPBACK_ACCEPT_ALL)
        case .none: Int32(LOOPBACK_ACCEPT_NONE)
        case .refused: Int32(LOOPBACK_REFUSE)
        }
    }
}

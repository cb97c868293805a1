import Glibc

/// What a transport is made with; fixed for its life.
package struct TransportConfiguration: Sendable, Equatable {
    /// Threads, each with a libuv loop and connections of its own. The default is 1.
    package var loops = 1
    /// Transfers at work at once, over all loops. The default is 1,024.
    package var maxTransfers = 1024
    /// Of these for one scheme, host and port, over all loops. The default is 64.
    package var maxTransfersPerHost = 64
    /// Milliseconds a connection may lie idle. The default is 60,000.
    package var idleConnectionTime: UInt32 = 60_000
    /// PEM bundle of trusted authorities; `nil` is the system's.
    package var authorityFile: String?
    /// `sha256//BASE64`, any of which the server's key must match.
    package var pinnedKeys: [String] = []
    /// Verifies neither chain nor name.
    package var isInsecure = false
    /// PEM; a certificate without a key file brings its key along.
    package var clientCertificateFile: String?
    package var clientKeyFile: String?
    package var clientKeyPassword: String?
    /// The default is 1.2.
    package var minimumTLSVersion = TLSVersion.v12
    /// The default is `never`.
    package var http2 = HTTP2.never
    /// The default is ``Engine/standard``.
    package var engine = Engine.standard
    /// One jar of cookies for all loops. The default is `false`, and then nothing is kept and nothing sent.
    package var keepsCookies = false
    package var userAgent: String?
    /// The `Accept-Encoding` sent; `nil` sends none.
    package var acceptedEncodings: String?

    package enum TLSVersion: UInt8, Sendable {
        case v12 = 0
        case v13
    }

    package enum HTTP2: UInt8, Sendable {
        case never = 0
        /// Under TLS, where the server agrees (ALPN).
        case negotiated
        /// Everywhere, without asking.
        case priorKnowledge
    }

    package enum Engine: UInt8, Sendable {
        /// The native HTTP/1.1 engine, for what it can carry.
        case http1 = 1
        case libcurl

        /// What the environment variable `FERRY_ENGINE` names, `automatic` or `libcurl`; without it, libcurl. It is read
        /// once, so that all agents of a process have the same default.
        package static let standard: Engine = engine(named: getenv("FERRY_ENGINE").map { String(cString: $0) })

        package static func engine(named name: String?) -> Engine {
            name == "automatic" ? .http1 : .libcurl
        }
    }

    package init() {}
}

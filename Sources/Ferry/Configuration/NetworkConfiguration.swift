public import Dispatch
package import FerryTransport

/// The configuration of an agent. Every member has a default.
public struct NetworkConfiguration: Sendable {
    /// The URL to which paths are joined, like `http://127.0.0.1:8080/v1`. The default is `nil`: every path must be an
    /// absolute URL.
    public var baseURL: String?

    /// The URL to which the paths of requests that use the CDN are joined. The default is `nil`.
    public var cdnURL: String?

    /// The filters that change every path before it is joined, in their order. Absolute URLs do not pass them. The
    /// default is none.
    public var urlFilters: [any URLFilter] = []

    /// The header fields of every request that does not set a field of the same name. The default is none.
    ///
    /// Secret fields (see ``sensitiveHeaders``) are sent to servers that the configuration or a request names as base
    /// URL or CDN URL. If ``baseURL`` or ``cdnURL`` is set, they are sent to an absolute URL only if it has the origin
    /// of one of these.
    public var headers: Headers

    /// The names of secret header fields, in addition to `Authorization`, `Cookie` and `Proxy-Authorization` and to
    /// those that ``redirectPolicy`` declares. Secret fields are never shown, and are not sent to another origin after
    /// a redirect. The default is none.
    public var sensitiveHeaders: [String] = []

    /// All declared names, from both places.
    var declaredSecrets: [String] { sensitiveHeaders + redirectPolicy.sensitiveHeaders }

    /// The timeouts of requests that set none. The default is 60 seconds without a byte.
    public var timeouts: Timeouts

    /// The deadline of requests that set none: a limit for the whole run, including the queue. The default is `nil`, no
    /// limit.
    public var deadline: Duration?

    /// The accepted status codes of requests that set none. The default is 200 to 299.
    public var statusValidation: StatusValidation

    /// The limits on concurrency and sizes. The default is ``Limits-swift.struct/init()``.
    public var limits: Limits

    /// The number of event loops, each with its own thread and connections. The default is 1.
    public var eventLoopCount: Int

    /// The time after which an idle connection is closed. The default is 60 seconds.
    public var idleConnectionTime: Duration

    /// The maximum age of a connection that is reused, so that a service follows changes of DNS and of the servers
    /// behind an address. An older connection ends with its current response. The default is ten minutes; `nil` means
    /// no limit.
    ///
    /// The actual age varies by up to a tenth, so that connections that were opened together do not end together.
    /// libcurl counts whole seconds.
    public var connectionLifetime: Duration? = .seconds(600)

    /// The time without a byte after which the system probes a connection (TCP keep-alive, RFC 9293, 3.8.4; tcp(7)).
    /// The default is `nil`: no probes.
    ///
    /// If three probes, a third of this time apart, are not answered, the system closes the connection: no later
    /// request uses it, and a run that waits for a response on it fails. The system counts whole seconds, from 1 to
    /// 32,767. The setting has no effect on a Unix socket.
    public var tcpKeepAlive: Duration?

    /// The TLS settings. By default the system's authorities are trusted, and chain and name are verified.
    public var tls: TLSConfiguration

    /// When HTTP/2 is used. The default is ``HTTP2Policy/never``.
    public var http2: HTTP2Policy = .never

    /// The engine that carries requests. The default is ``TransferEngine/standard``: Ferry's own engine for every
    /// request that it supports, unless the environment says otherwise.
    public var engine: TransferEngine = .standard

    /// Whether the agent keeps cookies in one jar and sends them where they belong (RFC 6265). The default is `false`:
    /// `Set-Cookie` is an ordinary header field.
    public var keepsCookies = false

    /// The queue on which closures and delegates are called unless the start of a run names another. It must be serial.
    /// The default is `nil`, a private serial queue of the agent, so that a blocked main thread has no effect.
    public var callbackQueue: DispatchQueue?

    /// Which redirects are followed. By default up to 10, without secrets if the origin changes.
    public var redirectPolicy: RedirectPolicy = .default

    /// Which runs are retried. The default is ``RetryPolicy/none``.
    public var retryPolicy: RetryPolicy = .none

    /// The number of retries for all runs of a host together. The default is a fifth of its requests that may be
    /// retried, and ten per second.
    public var retryBudget = RetryBudget()

    /// The permitted addresses. The default is ``AddressPolicy/any``.
    public var addressPolicy: AddressPolicy = .any

    /// The proxy. The default is ``ProxyConfiguration/none``.
    public var proxy: ProxyConfiguration = .none

    /// The path of a Unix socket (unix(7)) to which every connection goes. The URL still determines the `Host` field
    /// and, with https, the name in the certificate. The default is `nil`.
    ///
    /// HTTP/1.1 is used, whatever ``http2`` says. A run that uses a proxy fails with `invalidRequest`, and a run with
    /// ``AddressPolicy/publicOnly`` with `addressForbidden`. If the path is empty or longer than 107 bytes, every run
    /// fails with `invalidRequest`. If no server listens, runs fail with `connect`, and the message names the path.
    public var unixSocket: String?

    /// Addresses to use instead of looking up a host: `["api.example.com:443": ["10.0.0.7", "::1"]]`, up to 16 per host
    /// and port. The default is none.
    ///
    /// The `Host` field and the certificate check still use the name, and ``addressPolicy`` applies. A proxy that
    /// resolves names itself is not affected. If a key is not a name or IPv4 address with a port, or a value is not an
    /// address, every run fails with `invalidRequest`.
    public var hostOverrides: [String: [String]] = [:]

    /// How requests are distributed over the addresses of a name. The default is ``AddressSelection/ordered``.
    public var addressSelection: AddressSelection = .ordered

    /// The adapters that change every request before it is sent, in their order. The default is none.
    public var adapters: [any RequestAdapter] = []

    /// The interceptors that may respond without the network, asked in their order. The default is none.
    public var interceptors: [any RequestInterceptor] = []

    /// Adds a token to requests and refreshes it. The default is `nil`.
    public var authenticator: (any Authenticator)?

    /// The limit for token refreshes that do not help. The default is 3 in 60 seconds.
    public var refreshLimit = RefreshLimit()

    /// How long before its ``Authenticator/expiration(of:)`` a token is replaced. A token that a refresh has returned
    /// is not replaced before half of its lifetime. The default is 30 seconds.
    public var tokenRefreshLead: Duration = .seconds(30)

    /// Supplies credentials for challenges of servers and proxies. The default is `nil`: a 401 is
    /// delivered, and a 407 of a proxy is `proxy(authRequired)`.
    public var credentialProvider: (any CredentialProvider)?

    /// The store of the cache. The default is `nil`: no responses are stored.
    public var cache: CacheConfiguration?

    /// Whether responses are stored, and for how long, for requests with ``CachePolicy/configured``. It has an effect
    /// only with a ``cache``. The default is ``CachePolicy/none``.
    public var cachePolicy: CachePolicy = .none

    /// The observers of all runs. The default is none.
    public var observers: [any RequestObserver] = []

    /// The recorder of all exchanges with servers. The default is `nil`.
    public var recorder: Recorder?

    /// The log. The default is `nil`: nothing is logged, at no cost.
    public var logSink: (any LogSink)?

    /// The `User-Agent` field; `nil` sends none. The default is `Ferry`.
    public var userAgent: String?

    /// The accepted content codings (`Accept-Encoding`); empty means none. The default is `gzip` and `deflate`. Every
    /// ``ContentEncoding`` is decoded before the body is delivered, requested or not. The body of a 206 is delivered as
    /// it is, because it is a part of the coded bytes.
    public var acceptedEncodings: [ContentEncoding]

    /// Creates a configuration. Parameters that are left out have their defaults.
    public init(
        baseURL: String? = nil, headers: Headers = Headers(), timeouts: Timeouts = Timeouts(),
        deadline: Duration? = nil, statusValidation: StatusValidation = .successful, limits: Limits = Limits(),
        eventLoopCount: Int = 1, idleConnectionTime: Duration = .seconds(60),
        tls: TLSConfiguration = TLSConfiguration(),
        callbackQueue: DispatchQueue? = nil, userAgent: String? = "Ferry",
        acceptedEncodings: [ContentEncoding] = [.gzip, .deflate]
    ) {
        self.baseURL = baseURL
        self.headers = headers
        self.timeouts = timeouts
        self.deadline = deadline
        self.statusValidation = statusValidation
        self.limits = limits
        self.eventLoopCount = eventLoopCount
        self.idleConnectionTime = idleConnectionTime
        self.tls = tls
        self.callbackQueue = callbackQueue
        self.userAgent = userAgent
        self.acceptedEncodings = acceptedEncodings
    }
}

/// A content coding (RFC 9110, 8.4.1) that Ferry can decode.
public enum ContentEncoding: String, Sendable, Hashable {
    /// gzip (RFC 1952).
    case gzip
    /// deflate (RFC 1950).
    case deflate
    /// Brotli (RFC 7932).
    case brotli = "br"
    /// Zstandard (RFC 8878).
    case zstd
}

/// The limits on concurrency and sizes.
///
/// Values below 1 count as 1; values of ``queueLength`` and ``minimumIdlePerHost`` below 0 count as 0. If an agent has
/// several event loops, each has its share.
public struct Limits: Sendable, Hashable {
    /// The maximum number of concurrent exchanges; further ones wait in the queue. The default is 1,024, the maximum
    /// 1,048,576 per event loop.
    public var maxConcurrentTransfers = 1024

    /// The maximum number of concurrent exchanges per scheme, host and port, at least one per event loop, and at most
    /// 100 per event loop if HTTP/2 may be used. The default is 64.
    public var transfersPerHost = 64

    /// The maximum number of concurrent requests on one HTTP/2 connection; further requests open another. The server
    /// may allow fewer. The default and the maximum are 100.
    public var maxStreamsPerConnection = 100

    /// The maximum number of unfinished runs beyond ``maxConcurrentTransfers``, whether they wait for that limit or for
    /// ``transfersPerHost``. A further run fails with `queueFull`. The default is `nil`, no limit.
    public var queueLength: Int?

    /// The maximum size of all heads of one response together, with its trailer, in bytes; more is
    /// `headersTooLarge(bytes)`. The default is 64 KiB. libcurl 8 itself accepts at most 300 KiB.
    ///
    /// Whatever the limit, a head may have 1,000 fields and a trailer another 1,000, and a field's value may have
    /// 65,535 bytes: more is `headersTooLarge(bytes)`, too. A longer name is malformed.
    public var headerBytes = 64 * 1024

    /// The maximum size of a body in memory after decoding, in bytes; more is `responseTooLarge`. The default is 64
    /// MiB.
    public var maxBodyBytes = 64 * 1024 * 1024

    /// The number of unused connections to keep ready for each scheme, host and port in use, until
    /// ``NetworkConfiguration/idleConnectionTime`` after its last request. They are opened in addition to those of
    /// requests. With several event loops each has its share, at least one. Only Ferry's own engine supports this, for
    /// HTTP/1.1 and not through a proxy. The default is 0.
    public var minimumIdlePerHost = 0

    /// Creates limits with their defaults.
    public init() {}
}

/// How requests are distributed over the addresses of a name.
///
/// With any selection, an address that refuses a connection, does not connect in time, or connects and never responds,
/// is avoided while there are others: for one second, doubling with each further failure up to a minute.
///
/// libcurl supports only ``ordered``.
public enum AddressSelection: Sendable, Hashable {
    /// The first address in the system's order (RFC 6724) that connects, as with Happy Eyeballs (RFC 8305).
    case ordered
    /// Each address in turn: all get the same number of requests, over connections of their own.
    case roundRobin
    /// The address with the fewest active requests, so that a slow server gets fewer; equal ones in turn.
    case leastRequests
}

/// When HTTP/2 (RFC 9113) is used.
///
/// It is off by default, for two reasons: under load libcurl before 8.0 may take a truncated body without a length for
/// a complete one, and on a fast network one connection with 100 streams is slower than 64 HTTP/1.1 connections.
public enum HTTP2Policy: Sendable, Hashable {
    /// HTTP/2 is never used.
    case never
    /// HTTP/2 over TLS with servers that offer it (ALPN), HTTP/1.1 with all others.
    case negotiated
    /// HTTP/2 with every server without negotiation, also without TLS. With a server that does not support it, the run
    /// fails. Without TLS, and with libcurl before 8.0, each request except exchanges opens a connection of its own.
    case priorKnowledge
}

/// The engine that carries requests.
public enum TransferEngine: Sendable, Hashable {
    /// libcurl carries every request.
    case libcurl
    /// Ferry's own engine carries every request that it supports, at about half the CPU time of libcurl: HTTP/1.1, and
    /// exchanges over HTTP/2.
    ///
    /// libcurl carries the rest: all other requests over HTTP/2, plain requests through an HTTP proxy, requests with
    /// credentials for challenges (Digest, NTLM, Negotiate, and Basic on demand), and all requests of an agent that
    /// keeps cookies.
    /// ``RequestMetrics/engine`` tells which engine carried a run.
    case automatic

    /// The default of ``NetworkConfiguration/engine``: ``automatic``, unless the environment variable `FERRY_ENGINE` is
    /// `libcurl`. With the variable, an operator can change the engine of a service without a new build. It is read
    /// once.
    public static var standard: TransferEngine {
        TransportConfiguration.Engine.standard == .libcurl ? .libcurl : .automatic
    }
}

extension NetworkConfiguration {
    /// The part of the configuration that the transport needs.
    package var transport: TransportConfiguration {
        var made = TransportConfiguration()
        made.eventLoopCount = max(eventLoopCount, 1)
        made.maxTransfers = max(limits.maxConcurrentTransfers, 1)
        made.maxTransfersPerHost = max(limits.transfersPerHost, 1)
        made.maxStreamsPerConnection = UInt32(clamping: max(limits.maxStreamsPerConnection, 1))
        made.idleConnectionTime = milliseconds(idleConnectionTime)
        made.connectionLifetime = connectionLifetime.map { max(milliseconds($0), 1) } ?? 0
        made.keepAliveTime = milliseconds(tcpKeepAlive)
        made.authorityFile = tls.authorityFile
        made.pinnedKeys = tls.pinnedKeys
        made.isInsecure = tls.verification == .none
        made.clientCertificateFile = tls.clientCertificate?.certificateFile
        made.clientKeyFile = tls.clientCertificate?.keyFile
        made.clientKeyPassword = tls.clientCertificate?.keyPassword
        switch tls.minimumVersion {
        case .v12: made.minimumTLSVersion = .v12
        case .v13: made.minimumTLSVersion = .v13
        }
        switch http2 {
        case .never: made.http2 = .never
        case .negotiated: made.http2 = .negotiated
        case .priorKnowledge: made.http2 = .priorKnowledge
        }
        made.engine = engine == .automatic ? .http1 : .libcurl
        made.keepsCookies = keepsCookies
        switch addressSelection {
        case .ordered: made.addressSelection = .ordered
        case .roundRobin: made.addressSelection = .roundRobin
        case .leastRequests: made.addressSelection = .leastRequests
        }
        let ready = min(max(limits.minimumIdlePerHost, 0), 1 << 20)
        made.minimumIdle = UInt32(clamping: ready / made.eventLoopCount + (ready % made.eventLoopCount).signum())
        made.unixSocket = unixSocket
        made.userAgent = userAgent
        made.acceptedEncodings = acceptedEncodings.isEmpty ? nil : acceptedEncodings.field
        return made
    }
}

extension TransferEncodings {
    init(_ encodings: [ContentEncoding]) { self = encodings.isEmpty ? .none : .these(encodings.field) }
}

extension [ContentEncoding] {
    /// The value of an `Accept-Encoding` field.
    var field: String { map(\.rawValue).joined(separator: ", ") }
}

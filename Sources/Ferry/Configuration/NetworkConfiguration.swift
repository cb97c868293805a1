public import Dispatch
package import FerryTransport

/// What an agent is made with; complete by default.
public struct NetworkConfiguration: Sendable {
    /// Where paths are joined to, like `http://127.0.0.1:8080/v1`. The default is `nil`: every path is an absolute URL.
    public var baseURL: String?

    /// Where the paths of requests that use the CDN are joined to. The default is `nil`.
    public var cdnURL: String?

    /// Change every path before it is joined, in their order; absolute URLs do not pass them. The default is none.
    public var urlFilters: [any URLFilter] = []

    /// Sent with every request that does not have a field of the same name. The default is none.
    ///
    /// What is secret of it (``sensitiveHeaders`` says which) goes to the servers that are named as a base or a CDN,
    /// here or by a request. To absolute URLs it goes only where they are of the servers of ``baseURL`` and ``cdnURL``,
    /// when there are any.
    public var headers: Headers

    /// Names of header fields that are secret, besides `Authorization`, `Cookie` and `Proxy-Authorization`: they are
    /// never shown, and do not follow a redirect to another origin. Those that ``redirectPolicy`` declares count, too.
    /// The default is none.
    public var sensitiveHeaders: [String] = []

    /// All names that are declared, in whichever of the two places.
    var declaredSecrets: [String] { sensitiveHeaders + redirectPolicy.sensitiveHeaders }

    /// Of requests that say none. The default is 60 seconds without a byte.
    public var timeouts: Timeouts

    /// Over everything, the queue included, of requests that say none. The default is `nil`, no bound.
    public var deadline: Duration?

    /// Of requests that say none. The default is 200 to 299.
    public var statusValidation: StatusValidation

    /// How much at once. The default is ``Limits-swift.struct/init()``.
    public var limits: Limits

    /// Threads, each with a loop and connections of its own. The default is 1.
    public var eventLoopCount: Int

    /// How long a kept connection may lie idle. The default is 60 seconds.
    public var idleConnectionTime: Duration

    /// How old a connection may be that is used again, so that a service follows changes of DNS and of the servers
    /// behind an address. An older one ends with its response. The default is ten minutes; `nil` is no bound.
    ///
    /// Each connection has up to a tenth more or less, so that those that were opened together do not end together.
    /// libcurl counts whole seconds.
    public var connectionLifetime: Duration? = .seconds(600)

    /// After how long without a byte the system asks the server whether it is still there (TCP keep-alive, RFC 9293,
    /// 3.8.4; tcp(7)). The default is `nil`: it never asks.
    ///
    /// When three probes, a third of this time apart, are not answered, the system closes the connection: no later
    /// request is sent on it, and a run that waits for a response on it fails. The system counts whole seconds, from 1
    /// to 32,767. On a Unix socket this has no effect.
    public var tcpKeepAlive: Duration?

    /// Whom to trust. The default is the system's authorities, chain and name verified.
    public var tls: TLSConfiguration

    /// Whether HTTP/2 is spoken. The default is ``HTTP2Policy/never``.
    public var http2: HTTP2Policy = .never

    /// What carries requests over HTTP/1.1. The default is ``TransferEngine/standard``: Ferry's own engine
    /// where it can carry the request, unless the environment says otherwise.
    public var engine: TransferEngine = .standard

    /// Whether cookies of answers are kept, in one jar for the agent, and sent where they belong (RFC 6265). The
    /// default is `false`: a `Set-Cookie` is a field like any other.
    public var keepsCookies = false

    /// Where closures and delegates are called unless the start says otherwise; must be serial. The default is `nil`, a
    /// private serial queue of the agent, so that a blocked main thread does no harm.
    public var callbackQueue: DispatchQueue?

    /// Which redirects are followed. The default is up to 10, with the secrets left behind where the origin changes.
    public var redirectPolicy: RedirectPolicy = .default

    /// Which runs are tried again. The default is ``RetryPolicy/none``.
    public var retryPolicy: RetryPolicy = .none

    /// How many retries there may be for all runs of a host together. The default is a fifth of its requests.
    public var retryBudget = RetryBudget()

    /// Which addresses may be connected to. The default is ``AddressPolicy/any``.
    public var addressPolicy: AddressPolicy = .any

    /// The way to the servers. The default is ``ProxyConfiguration/none``, straight.
    public var proxy: ProxyConfiguration = .none

    /// The path of a Unix socket (unix(7)) that every connection goes to. The URL still says what `Host` names and, for
    /// https, whose certificate is accepted. The default is `nil`.
    ///
    /// HTTP/1.1 is spoken, whatever ``http2`` says. A run that goes through a proxy fails with `invalidRequest`, one
    /// with ``AddressPolicy/publicOnly`` with `addressForbidden`. A path that is empty or longer than 107 bytes fails
    /// every run with `invalidRequest`; where no server listens, runs fail with `connect`, and the message names the
    /// path.
    public var unixSocket: String?

    /// Addresses in place of those that hosts have: `["api.example.com:443": ["10.0.0.7", "::1"]]`, up to 16 for one
    /// host and port. Nothing is looked up for these. The default is none.
    ///
    /// `Host` and the certificate are still those of the name, and ``addressPolicy`` counts. A proxy that looks names
    /// up itself does so. A key that is not a name, or an address of IPv4, with a port, or a value that is no address,
    /// fails every run with `invalidRequest`.
    public var hostOverrides: [String: [String]] = [:]

    /// Which address of a name that has several the connections and requests of a host go to. The default is
    /// ``AddressSelection/ordered``.
    public var addressSelection: AddressSelection = .ordered

    /// Change every request before it leaves, in their order. The default is none.
    public var adapters: [any RequestAdapter] = []

    /// May answer runs without the network; asked in their order. The default is none.
    public var interceptors: [any RequestInterceptor] = []

    /// Puts a token on requests and refreshes it. The default is `nil`.
    public var authenticator: (any Authenticator)?

    /// How often a token that is refused is refreshed. The default is 3 refreshes in 60 seconds that do not help.
    public var refreshLimit = RefreshLimit()

    /// How long before its ``Authenticator/expiration(of:)`` a token is replaced; one that was fetched not before half
    /// of its time has passed. The default is 30 seconds.
    public var tokenRefreshLead: Duration = .seconds(30)

    /// Answers the challenges of servers and proxies. The default is `nil`: 401 and 407 are delivered.
    public var credentialProvider: (any CredentialProvider)?

    /// Where answers are kept, for requests that want it. The default is `nil`: nothing is kept.
    public var cache: CacheConfiguration?

    /// Whether responses to requests that say ``CachePolicy/configured`` are stored, and who says for how long. It
    /// matters only with a ``cache``. The default is ``CachePolicy/none``.
    public var cachePolicy: CachePolicy = .none

    /// Observers of all runs. The default is none.
    public var observers: [any RequestObserver] = []

    /// Records every exchange with a server. The default is `nil`.
    public var recorder: Recorder?

    /// Where Ferry says what it does. The default is `nil`: nothing is logged, and nothing is spent on it.
    public var logSink: (any LogSink)?

    /// The `User-Agent` sent; `nil` sends none. The default is `Ferry`.
    public var userAgent: String?

    /// The content codings asked for (`Accept-Encoding`); empty asks for none. The default is `gzip` and `deflate`.
    /// Whatever is asked for, every ``ContentEncoding`` is undone before the body is handed over.
    public var acceptedEncodings: [ContentEncoding]

    /// A configuration with the defaults, and what is named here.
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

/// A content coding (RFC 9110, 8.4.1) that Ferry can undo.
public enum ContentEncoding: String, Sendable, Hashable {
    /// RFC 1952
    case gzip
    /// RFC 1950
    case deflate
    /// RFC 7932
    case brotli = "br"
    /// RFC 8878
    case zstd
}

/// How much at once.
///
/// What is below 1 counts as 1, a ``queueLength`` below 0 as 0. Where an agent has several loops, each has its share.
public struct Limits: Sendable, Hashable {
    /// Exchanges at work at once; the others wait. The default is 1,024, the most 1,048,576 for each loop.
    public var maxConcurrentTransfers = 1024

    /// Of these for one scheme, host and port; with several loops each has one at least. The default is 64.
    public var transfersPerHost = 64

    /// Requests at once on one connection of HTTP/2; further ones open another. The server may allow fewer. The
    /// default and the most is 100.
    public var maxStreamsPerConnection = 100

    /// Runs that may wait beyond ``maxConcurrentTransfers``; one more fails with `queueFull`. The default is `nil`, no
    /// bound.
    public var queueLength: Int?

    /// Bytes of all heads of one answer together; more is `headersTooLarge`. The default is 64 KiB.
    public var headerBytes = 64 * 1024

    /// Bytes of a body held in memory, after decoding; more is `responseTooLarge`. The default is 64 MiB.
    public var maxBodyBytes = 64 * 1024 * 1024

    /// Connections that lie ready, unused, at each scheme, host and port as long as it is in use: until
    /// ``NetworkConfiguration/idleConnectionTime`` after its last request. They are opened beside requests; with
    /// several loops each has its share, one at least. Only Ferry's own engine has them, and not through a proxy. The
    /// default is 0.
    public var minimumIdlePerHost = 0

    /// The defaults.
    public init() {}
}

/// Which address of a name that has several is used.
///
/// Whichever it is, an address that refuses a connection, does not take one in time, or takes one and answers nothing,
/// is avoided as long as there are others: for one second, and twice as long each time that it fails again, up to a
/// minute.
///
/// libcurl knows ``ordered`` only.
public enum AddressSelection: Sendable, Hashable {
    /// The first one in the system's order (RFC 6724) that connects, as of Happy Eyeballs (RFC 8305).
    case ordered
    /// Each in turn: every address gets the same number of requests, over connections of its own.
    case roundRobin
    /// The one with the fewest requests at the time, so that a slow server gets fewer; each in turn among equals.
    case leastRequests
}

/// When HTTP/2 (RFC 9113) is spoken.
///
/// It is off unless it is asked for: libcurl before 8.0 may take a cut off body without a length for a whole one under
/// load, and on a fast network one connection of 100 streams is slower than 64 connections of HTTP/1.1.
public enum HTTP2Policy: Sendable, Hashable {
    /// Never.
    case never
    /// Over TLS, with servers that offer it (ALPN); HTTP/1.1 with all others.
    case negotiated
    /// With every server, also without TLS and without asking. One that does not speak it fails the run.
    case priorKnowledge
}

/// What carries requests over HTTP/1.1.
public enum TransferEngine: Sendable, Hashable {
    /// libcurl carries every request.
    case libcurl
    /// Ferry's own HTTP/1.1 engine carries every request that it can, at about half the CPU time of libcurl.
    ///
    /// libcurl carries the rest: HTTP/2, plain requests through an HTTP proxy, requests with credentials for
    /// challenges (Digest, NTLM, Negotiate, and Basic on demand), and all requests of an agent that keeps cookies.
    /// ``RequestMetrics/engine`` tells which one carried a run.
    case automatic

    /// The default of ``NetworkConfiguration/engine``: ``automatic``, unless the environment variable `FERRY_ENGINE` is
    /// `libcurl`. An operator can so change the engine of a service without a new build. The variable is read once.
    public static var standard: TransferEngine {
        TransportConfiguration.Engine.standard == .libcurl ? .libcurl : .automatic
    }
}

extension NetworkConfiguration {
    /// The part of it that the transport is made with.
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

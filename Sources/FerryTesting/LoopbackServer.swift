internal import CLoopback

/// An HTTP/1.1 server on the loopback interface, for tests and benchmarks.
///
/// It runs on a thread of its own, has built-in routes, passes requests to closures, and plays scripts that misbehave
/// byte by byte.
///
/// ```swift
/// let server = try LoopbackServer()
/// server.handle("GET", "/users/7") { _ in LoopbackResponse(json: #"{"nick":"kim"}"#) }
/// server.script(path: "/broken", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close])
/// let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
/// try await agent.send(UserInfo(id: 7))
/// #expect(server.requestCount == 1)
/// ```
///
/// A script for a path takes precedence over handlers, and handlers over the built-in routes. These are:
///
/// | path | response |
/// |---|---|
/// | `/` | this list as text |
/// | `/hello` | 12 bytes, `Hello, ferry` |
/// | `/bytes/N` | N bytes of ``pattern(_:)``, with a strong `ETag`; Range, If-Range and If-None-Match are supported. `?cut=N` closes after N bytes of the body, `?zeros=1` sends zero bytes, `?etag=E` sets another validator (`W/"x"` for a weak one) |
/// | `/json` | an array of 12 objects, about 2 KB |
/// | `/delay/MS` | as `/hello`, after MS milliseconds |
/// | `/status/N` | that status; `?body=text`, and every other parameter as a field |
/// | `/echo` | method, target, path, query, headers, body as JSON; `bodyBase64` when the body is not UTF-8 |
/// | `/echo/body` | the body, streamed back as it arrives |
/// | `/headers` | the fields as JSON, pairs in order |
/// | `/header?Name=value` | `Hello, ferry` with these fields |
/// | `/redirect/N` | N redirects, then `Hello, ferry`; `?status=307` |
/// | `/redirect-to?url=U` | one redirect; `&status=307` |
/// | `/basic-auth/USER/PASSWORD` | 401 without these credentials |
/// | `/chunked/N` | N bytes in chunks; `?chunk=SIZE` |
/// | `/gzip/N`, `/deflate/N` | N bytes, compressed; `?zeros=1`, `?cut=1` (half of the stream, its length agrees), `?corrupt=1`, `?raw=1` (deflate without the zlib frame). Above 4 MiB it is chunked and compressed while it is sent |
/// | `/drip?bytes=N&interval=MS` | N bytes, one at each interval; `&chunk=SIZE` |
/// | `/upload` | `{"bytes":N,"sha256":"…"}` of the body |
/// | `/close` | as `/hello`, then closes |
/// | `/until-close/N` | N bytes without a length, then FIN |
public final class LoopbackServer: Sendable {
    /// The port that the server listens on.
    public let port: UInt16
    /// `http://127.0.0.1:PORT`, or https with a certificate; without a trailing slash.
    public let baseURL: String
    /// The server's certificate, if it uses TLS.
    public let certificate: ServerCertificate?

    let handle: LoopbackHandle
    let callbacks: LoopbackCallbacks

    /// Starts a server, which is listening when this returns.
    ///
    /// Throws ``LoopbackError/start(_:)`` if it cannot listen.
    public init(_ options: Options = Options()) throws(LoopbackError) {
        callbacks = LoopbackCallbacks()
        handle = try LoopbackHandle(options, callbacks)
        port = loopback_port(handle.pointer)
        certificate = options.certificate
        let scheme = options.certificate == nil ? "http" : "https"
        let host = options.address.contains(":") ? "[\(options.address)]" : options.address
        baseURL = options.address.first == "/" ? "\(scheme)://localhost" : "\(scheme)://\(host):\(port)"
    }

    /// Closes all connections, ends the thread and waits for it. Counters and recorded requests stay readable.
    ///
    /// A second call does nothing. A server also stops when it is deallocated.
    public func stop() {
        loopback_stop(handle.pointer)
    }

    /// The bytes of `/bytes/N` in a range of offsets: `a`–`z`, `0`–`9` and a line feed, repeated.
    public static func pattern(_ range: Range<Int>) -> [UInt8] {
        let period = Array("abcdefghijklmnopqrstuvwxyz0123456789\n".utf8)
        let start = range.lowerBound % period.count
        var bytes = Array(period[start...] + period[..<start])
        // Twice as many whole periods each time: one byte after another takes long in a debug build.
        while bytes.count < range.count { bytes += bytes }
        return Array(bytes.prefix(range.count))
    }
}

/// Runs `body` with a server, which is stopped when `body` returns or throws.
///
/// ```swift
/// try await withLoopbackServer { server in print(server.baseURL) }
/// ```
public func withLoopbackServer<Value>(
    _ options: LoopbackServer.Options = .init(), isolation: isolated (any Actor)? = #isolation,
    _ body: (LoopbackServer) async throws -> Value
) async throws -> Value {
    let server = try LoopbackServer(options)
    defer { server.stop() }
    return try await body(server)
}

extension LoopbackServer {
    /// The options of a server; all have defaults.
    public struct Options: Sendable {
        /// Whether connections are accepted.
        public enum Accepting: Sendable {
            /// All connections are accepted.
            case all
            /// None is accepted, and the backlog is full: connects hang until they time out.
            case none
            /// None is accepted, and the port is reserved but not listening: connects are refused.
            case refused
        }

        /// The address to listen on: an IPv4 or IPv6 address, or the path of a Unix socket. The path must not exist,
        /// and is not removed. The default is 127.0.0.1.
        public var address = "127.0.0.1"
        /// The port to listen on; 0 means any free port. The default is 0.
        public var port: UInt16 = 0
        /// The certificate for TLS. The default is nil: no TLS.
        public var certificate: ServerCertificate?
        /// Whether clients must have a certificate signed by the authority of ``certificate``. The default is `false`.
        public var demandsClientCertificate = false
        /// The supported versions of TLS, 12 for 1.2 and 13 for 1.3. The default is both.
        public var tlsVersions = 12...13
        /// The protocols for ALPN, in order of preference. The server agrees to `h2` but does not implement it: a
        /// script has to. The default is `http/1.1`.
        public var applicationProtocols = ["http/1.1"]
        /// Which connections are accepted. The default is all.
        public var accepting = Accepting.all
        /// How many of the latest requests ``LoopbackServer/requests`` keeps; 0 keeps none, which suits benchmarks. The
        /// default is 1,000.
        public var recordedRequests = 1_000
        /// The maximum number of body bytes in a recorded request. The default is 64 KiB.
        public var recordedBodyBytes = 65_536
        /// The maximum size in bytes of a body for a handler or `/echo`; larger ones get a 413. The default is 64 MiB.
        public var maximumBodyBytes = 64 * 1_024 * 1_024

        /// Creates the default options.
        public init() {}

        /// Creates the options of a server with TLS.
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

extension LoopbackServer {
    /// Responds to requests: called in a task of its own, with the whole body.
    public typealias Handler = @Sendable (LoopbackRequest) async -> LoopbackResponse

    /// Responds to requests of this method and path with a closure.
    ///
    /// The latest matching handler is used. It applies to requests that arrive after this returns.
    ///
    /// - Parameters:
    ///   - method: `GET`, …; case-sensitive.
    ///   - path: The path without a query; a path that ends with `*` is a prefix.
    ///   - handler: The closure. It may take any time; its response is dropped if the client has closed.
    public func handle(_ method: String, _ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), method, path)
    }

    /// Responds to requests of any method and this path with a closure.
    public func handle(_ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), nil, path)
    }
}

extension LoopbackServer {
    /// Plays a script for every request whose path begins with `path`.
    ///
    /// The head of the request has been read when the script starts; a leading `.expectHead` is already satisfied. The
    /// earliest matching script with uses left is used, before any handler.
    ///
    /// - Parameters:
    ///   - path: The prefix of the path.
    ///   - uses: How often it is played; `nil` for no limit.
    ///   - script: The script.
    public func script(path: String, uses: Int? = nil, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.path(path), uses: uses, script))
    }

    /// Plays a script on one connection, 1 for the first accepted, from its start.
    public func script(connection: Int, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.connections(connection...connection), script))
    }

    /// Plays a script on every connection, from its start.
    public func script(_ script: LoopbackScript) {
        install(LoopbackScript.Rule(.everyConnection, script))
    }

    /// Installs a rule, such as one of ``LoopbackScript/rules(contentsOf:)``.
    public func install(_ rule: LoopbackScript.Rule) {
        var arena = LoopbackStepArena()
        for step in rule.script.steps { arena.add(step) }
        let uses = UInt64(clamping: rule.uses ?? 0)
        arena.withSteps { steps in
            // An array has an address even if it is empty; then nothing is read.
            switch rule.place {
            case .path(let path):
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, path, 0, 0, uses)
            case .connections(let numbers):
                let first = UInt64(clamping: numbers.lowerBound), last = UInt64(clamping: numbers.upperBound)
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, nil, first, last, uses)
            case .everyConnection:
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, nil, 0, .max, uses)
            }
        }
    }

    /// Releases every present and later `.wait(name)` in this server's scripts.
    public func signal(_ name: String) {
        loopback_signal(handle.pointer, name)
    }
}

extension LoopbackServer {
    private var counters: loopback_counters {
        var counters = loopback_counters()
        loopback_count(handle.pointer, &counters)
        return counters
    }

    /// The number of accepted connections.
    public var connectionCount: Int { Int(counters.connections) }
    /// The number of connections that are open.
    public var openConnectionCount: Int { Int(counters.open) }
    /// The number of request heads read.
    public var requestCount: Int { Int(counters.requests) }
    /// The number of bytes received from sockets.
    public var receivedByteCount: Int { Int(counters.bytes) }
    /// The number of TLS handshakes finished.
    public var handshakeCount: Int { Int(counters.handshakes) }

    /// The latest requests, oldest first, at most ``Options/recordedRequests``.
    ///
    /// A request is listed as soon as its head was read; its body grows as it arrives.
    public var requests: [LoopbackRequest] {
        loopbackRequests(handle.pointer)
    }

    /// Waits until this many connections have been accepted since the start.
    ///
    /// This and the following methods throw `CancellationError` if the task is cancelled, and ``LoopbackError/stopped``
    /// if the server stops first.
    public func waitForConnections(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_CONNECTIONS, count)
    }

    /// Waits until at most this many connections are open.
    public func waitForOpenConnections(atMost count: Int) async throws {
        try await watch(LOOPBACK_WATCH_OPEN, count)
    }

    /// Waits until this many request heads have been read since the start.
    public func waitForRequests(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_REQUESTS, count)
    }

    /// Waits until this many bytes have been received since the start.
    public func waitForReceivedBytes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_BYTES, count)
    }

    /// Waits until this many TLS handshakes have been finished since the start.
    public func waitForHandshakes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_HANDSHAKES, count)
    }

    /// Waits until scripts have reached `.mark(name)` this many times since the start.
    public func waitForMark(_ name: String, count: Int = 1) async throws {
        try await watch(LOOPBACK_WATCH_MARK, count, name)
    }

    private func watch(_ kind: Int, _ value: Int, _ name: String = "") async throws {
        let id = callbacks.newWatch()
        // `onCancel` may run before the continuation exists: the table remembers it.
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard callbacks.begin(watch: id, continuation) else { return }
                loopback_watch(handle.pointer, id, Int32(kind), UInt64(clamping: value), name)
            }
        } onCancel: {
            callbacks.cancel(watch: id)
        }
    }
}

/// An error of a loopback server.
public enum LoopbackError: Error, Sendable, Equatable {
    /// The server could not listen: a negative `errno` from libuv (the port is in use, the address is not local).
    case start(Int32)
    /// OpenSSL could not make a certificate.
    case certificate
    /// A file could not be read or written.
    case file(String)
    /// The server was stopped while a task waited for it.
    case stopped
    /// A script is invalid; see ``LoopbackScript``.
    case script(String)
}

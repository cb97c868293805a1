internal import CLoopback

/// An HTTP/1.1 server on the loopback interface, for tests and benchmarks.
///
/// It runs on a thread of its own, answers built-in routes, hands requests to closures, and plays scripts that
/// misbehave byte by byte.
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
/// A script for a path is looked at before handlers, handlers before the built-in routes. These are:
///
/// | path | answer |
/// |---|---|
/// | `/` | this list as text |
/// | `/hello` | 12 bytes, `Hello, ferry` |
/// | `/bytes/N` | N bytes of ``pattern(_:)``, with a strong `ETag`; Range, If-Range and If-None-Match are honoured. `?cut=N` closes after N bytes of the body, `?zeros=1` sends zero bytes, `?etag=E` gives another validator (`W/"x"` for a weak one) |
/// | `/json` | an array of 12 objects, about 2 KB |
/// | `/delay/MS` | as `/hello`, after so many milliseconds |
/// | `/status/N` | that status; `?body=text`, and every other parameter as a field |
/// | `/echo` | method, target, path, query, headers, body as JSON; `bodyBase64` when the body is not UTF-8 |
/// | `/echo/body` | the body, streamed back as it comes |
/// | `/headers` | the fields as JSON, pairs in order |
/// | `/header?Name=value` | `Hello, ferry` with these fields |
/// | `/redirect/N` | N redirects, then `Hello, ferry`; `?status=307` |
/// | `/redirect-to?url=U` | one redirect; `&status=307` |
/// | `/basic-auth/USER/PASSWORD` | 401 without these credentials |
/// | `/chunked/N` | N bytes in chunks; `?chunk=SIZE` |
/// | `/gzip/N`, `/deflate/N` | N bytes, compressed; `?zeros=1`, `?cut=1` (half of the stream, its length agrees), `?corrupt=1`, `?raw=1` (deflate without the zlib frame). Above 4 MiB chunked, made as it goes |
/// | `/drip?bytes=N&interval=MS` | N bytes, one each interval; `&chunk=SIZE` |
/// | `/upload` | `{"bytes":N,"sha256":"…"}` of the body |
/// | `/close` | as `/hello`, then closes |
/// | `/until-close/N` | N bytes without a length, then FIN |
public final class LoopbackServer: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// `http://127.0.0.1:PORT`, or https with a certificate; no slash at its end.
    public let baseURL: String
    /// The certificate it shows, if it speaks TLS.
    public let certificate: ServerCertificate?

    let handle: LoopbackHandle
    let callbacks: LoopbackCallbacks

    /// Starts a server, which listens when this returns.
    ///
    /// Throws ``LoopbackError/start(_:)`` when it cannot.
    public init(_ options: Options = Options()) throws(LoopbackError) {
        callbacks = LoopbackCallbacks()
        handle = try LoopbackHandle(options, callbacks)
        port = loopback_port(handle.pointer)
        certificate = options.certificate
        let scheme = options.certificate == nil ? "http" : "https"
        let host = options.address.contains(":") ? "[\(options.address)]" : options.address
        baseURL = options.address.first == "/" ? "\(scheme)://localhost" : "\(scheme)://\(host):\(port)"
    }

    /// Closes all connections and ends the thread; waits for it. Counters and recorded requests stay readable.
    ///
    /// A second call does nothing. A server that is let go of stops likewise.
    public func stop() {
        loopback_stop(handle.pointer)
    }

    /// The bytes of `/bytes/N` in a range of offsets: `a`–`z`, `0`–`9` and a line feed, again and again.
    public static func pattern(_ range: Range<Int>) -> [UInt8] {
        let period = Array("abcdefghijklmnopqrstuvwxyz0123456789\n".utf8)
        return range.map { period[$0 % period.count] }
    }
}

/// Runs `body` with a server that is stopped when it returns or throws.
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

extension LoopbackServer {
    /// What answers requests: called in a task of its own, with the whole body.
    public typealias Handler = @Sendable (LoopbackRequest) async -> LoopbackResponse

    /// Answers requests of this method and path by a closure.
    ///
    /// The latest handler that fits is asked. Requests that arrive after this returns find it.
    ///
    /// - Parameters:
    ///   - method: `GET`, …, in the case of the wire.
    ///   - path: The path without a query; one that ends in `*` is a prefix.
    ///   - handler: Its answer may come at any time; one for a client that has left is nothing.
    public func handle(_ method: String, _ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), method, path)
    }

    /// Answers requests of any method and this path by a closure.
    public func handle(_ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), nil, path)
    }
}

extension LoopbackServer {
    /// Plays a script on every request whose path begins with `path`.
    ///
    /// The head of the request has been read when it begins; a leading `.expectHead` is satisfied by it. The earliest
    /// script that fits and has uses left is taken, before any handler.
    ///
    /// - Parameters:
    ///   - path: What the path begins with.
    ///   - uses: How often it is played; nil without a bound.
    ///   - script: What is done.
    public func script(path: String, uses: Int? = nil, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.path(path), uses: uses, script))
    }

    /// Plays a script on one connection, 1 for the first accepted, from its first moment on.
    public func script(connection: Int, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.connections(connection...connection), script))
    }

    /// Plays a script on every connection, from its first moment on.
    public func script(_ script: LoopbackScript) {
        install(LoopbackScript.Rule(.everyConnection, script))
    }

    /// Installs a rule, such as one of ``LoopbackScript/rules(contentsOf:)``.
    public func install(_ rule: LoopbackScript.Rule) {
        var arena = LoopbackStepArena()
        for step in rule.script.steps { arena.add(step) }
        let uses = UInt64(clamping: rule.uses ?? 0)
        arena.withSteps { steps in
            // An array has an address, also where nothing is in it; then nothing is read there.
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

    /// Lets every present and later `.wait(name)` of this server's scripts pass.
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

    /// How many connections were accepted.
    public var connectionCount: Int { Int(counters.connections) }
    /// How many of them are not closed.
    public var openConnectionCount: Int { Int(counters.open) }
    /// How many request heads were read.
    public var requestCount: Int { Int(counters.requests) }
    /// How many bytes were received, as they came from the socket.
    public var receivedByteCount: Int { Int(counters.bytes) }
    /// How many TLS handshakes were finished.
    public var handshakeCount: Int { Int(counters.handshakes) }

    /// The latest requests, oldest first, at most ``Options/recordedRequests``.
    ///
    /// A request stands here as soon as its head was read; its body grows as it arrives.
    public var requests: [LoopbackRequest] {
        loopbackRequests(handle.pointer)
    }

    /// Waits until so many connections have been accepted since the start.
    ///
    /// This and the others here throw `CancellationError` when the task is cancelled, and
    /// ``LoopbackError/stopped`` when the server stops first.
    public func waitForConnections(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_CONNECTIONS, count)
    }

    /// Waits until at most so many connections are open.
    public func waitForOpenConnections(atMost count: Int) async throws {
        try await watch(LOOPBACK_WATCH_OPEN, count)
    }

    /// Waits until so many request heads have been read since the start.
    public func waitForRequests(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_REQUESTS, count)
    }

    /// Waits until so many bytes have been received since the start.
    public func waitForReceivedBytes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_BYTES, count)
    }

    /// Waits until so many TLS handshakes have been finished since the start.
    public func waitForHandshakes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_HANDSHAKES, count)
    }

    /// Waits until scripts have come to `.mark(name)` so many times since the start.
    public func waitForMark(_ name: String, count: Int = 1) async throws {
        try await watch(LOOPBACK_WATCH_MARK, count, name)
    }

    private func watch(_ kind: Int, _ value: Int, _ name: String = "") async throws {
        let id = callbacks.newWatch()
        // `onCancel` may run before the continuation is there: the table remembers it.
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

/// Why a loopback server could not do what was asked of it.
public enum LoopbackError: Error, Sendable, Equatable {
    /// It could not listen: a negative `errno`, as libuv gives it (the port is taken, the address is not ours).
    case start(Int32)
    /// OpenSSL made no certificate.
    case certificate
    /// A file could not be read or written.
    case file(String)
    /// The server was stopped while something was awaited of it.
    case stopped
    /// A script is not what ``LoopbackScript`` says it is.
    case script(String)
}

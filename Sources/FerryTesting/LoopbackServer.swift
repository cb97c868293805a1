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

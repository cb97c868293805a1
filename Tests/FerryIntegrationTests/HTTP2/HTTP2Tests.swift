import Ferry
import Glibc
import Testing

@testable import FerryTestSupport

/// HTTP/2 with nginx and with nghttp2's own server.
@Suite(.timeLimit(.minutes(2))) struct HTTP2Tests {
    private func configuration(_ use: HTTP2Policy = .negotiated) throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = use
        return configuration
    }

    @Test("a thousand requests share a few connections")
    func reuse() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            try await all(1000) {
                let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .http2)))
                #expect(reply.text == "Hello, ferry" && reply.httpVersion == .http2)
            }
            let lines = try await nginx.log(mark, count: 1000)
            #expect(lines.count == 1000 && lines.allSatisfy { $0.version == "HTTP/2.0" })
            #expect(Set(lines.map(\.connection)).count <= 4)
        }
    }

    @Test("another connection is opened when one has as many streams as the server allows")
    func full() async throws {
        let server = try NGHTTPServer(streams: 4)
        try await withAgent(configuration()) { agent in
            try await all(128) {
                let reply = try await agent.send(HTTPRequest.to(server.url("/1m.bin")))
                #expect(reply.httpVersion == .http2 && reply.bytes.count == 1024 * 1024)
            }
            let opened = agent.statistics.connectionsOpened
            #expect((2..<128).contains(opened), "\(opened) connections")
        }
    }

    @Test(
        "a connection has no more streams than the configuration says",
        arguments: [(100, 1...4), (4, 2...127), (0, 5...127), (.max, 1...4)])
    func limited(streams: Int, connections: ClosedRange<UInt64>) async throws {
        let server = try NGHTTPServer()
        var configuration = try configuration()
        configuration.limits.maxStreamsPerConnection = streams
        try await withAgent(configuration) { agent in
            try await all(128) {
                let reply = try await agent.send(HTTPRequest.to(server.url("/1m.bin")))
                #expect(reply.httpVersion == .http2 && reply.bytes.count == 1024 * 1024)
            }
            let opened = agent.statistics.connectionsOpened
            #expect(connections.contains(opened), "\(opened) connections")
        }
    }

    @Test("HTTP/1.1 is used for a server that offers nothing else, and without HTTP/2 in the configuration")
    func negotiated() async throws {
        let nginx = try Nginx.shared
        try await withAgent(configuration()) { agent in
            for site in [Nginx.Site.tls, .http] {
                let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", site)))
                #expect(reply.httpVersion == .http11)
            }
        }
        try await withAgent(configuration(.never)) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .http2)))
            #expect(reply.httpVersion == .http11)
        }
    }

    @Test("64 megabytes in 64 streams arrive unchanged", arguments: [true, false])
    func large(isNginx: Bool) async throws {
        let nginx = try Nginx.shared
        let other = try isNginx ? nil : NGHTTPServer()
        let url = other?.url("/1m.bin") ?? nginx.url("/1m.bin", .http2)
        let right = sha256(Nginx.pattern(1024 * 1024))
        try await withAgent(configuration()) { agent in
            try await all(64) {
                let reply = try await agent.send(HTTPRequest.to(url))
                #expect(sha256(reply.bytes) == right && reply.httpVersion == .http2)
            }
        }
    }

    @Test("small and large bodies of all priorities share a connection")
    func priorities() async throws {
        let nginx = try Nginx.shared
        try await withAgent(configuration()) { agent in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<120 {
                    group.addTask {
                        let priority = [RequestPriority.low, .normal, .high][number % 3]
                        let name = number % 2 == 0 ? "/64k.bin" : "/hello.txt"
                        let reply = try await agent.send(prioritized(nginx.url(name, .http2), priority))
                        #expect(reply.bodyLength == (number % 2 == 0 ? 65_536 : 12))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    private func prioritized(_ url: String, _ priority: RequestPriority) -> HTTPRequest<Response> {
        var request = HTTPRequest.to(url)
        request.priority = priority
        return request
    }

    @Test("many simultaneous uploads arrive unchanged")
    func uploads() async throws {
        let nginx = try Nginx.shared
        let bytes = Nginx.pattern(300_000)
        let right = sha256(bytes)
        try await withAgent(configuration()) { agent in
            try await all(20) {
                let request = HTTPRequest.echo(nginx.url("/echo", .http2), .post, body: .bytes(bytes))
                let echo = try await agent.send(request).value
                #expect(echo.sha256 == right && echo.length == bytes.count)
            }
        }
    }

    /// libcurl before 8.1 reads on when a body of unknown length ends or is refused, although it has no place for the
    /// response of another request: that response gets wrong bytes, but only once in some thousand requests.
    @Test("with libcurl before 8.1 an upload has a connection of its own")
    func uploadsAlone() async throws {
        let server = try NGHTTPServer()
        try await withAgent(configuration()) { agent in
            let bodies = (0..<8).map { _ in AsyncStream.makeStream(of: [UInt8].self) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for body in bodies {
                    group.addTask {
                        let request = HTTPRequest(.put, server.url("/echo"), body: .stream(once: body.stream))
                        let reply = try await agent.send(request)
                        #expect(reply.bytes == [1, 2] && reply.httpVersion == .http2)
                    }
                    body.continuation.yield([1, 2])
                }
                if Self.mixesStreams {
                    _ = try await eventually("a connection for each") {
                        agent.statistics.connectionsOpened == 8 ? true : nil
                    }
                }
                for body in bodies { body.continuation.finish() }
                try await group.waitForAll()
            }
            // Other requests share a connection as before.
            try await all(100) { _ = try await agent.send(HTTPRequest.to(server.url("/hello.txt"))) }
            let opened = agent.statistics.connectionsOpened
            #expect(opened <= (Self.mixesStreams ? 12 : 4), "\(opened) connections")
        }
    }

    /// libcurl before 8.5 takes a connection of HTTP/1.1 for free as soon as it knows one of HTTP/2 to the same host.
    @Test("no request is sent into an upload over HTTP/1.1 that has its response already")
    func uploadWithTrailers() async throws {
        let nginx = try Nginx.shared
        var configuration = try configuration()
        configuration.keepsCookies = true  // so that libcurl sends the trailers
        try await withAgent(configuration) { agent in
            let (pieces, writer) = AsyncStream.makeStream(of: [UInt8].self)
            let body = RequestBody.stream(once: pieces).withTrailers(["X-End"]) { ["X-End": "1"] }
            async let upload = agent.send(HTTPRequest(.put, nginx.url("/early", .http2), body: body))
            writer.yield([1, 2])
            // It has arrived, and so has its response.
            _ = try await eventually("the upload") {
                try await agent.send(HTTPRequest.to(nginx.url("/status"))).text.contains("Writing: 2") ? true : nil
            }
            // The first one opens a connection of HTTP/2.
            let first = try await agent.send(HTTPRequest.to(nginx.url("/early", .http2)))
            var connections: Set<String> = []
            for _ in 0..<20 {
                let reply = try await agent.send(HTTPRequest.to(nginx.url("/early", .http2)))
                #expect(reply.httpVersion == .http2)
                connections.insert(reply.text)
            }
            #expect(connections == [first.text])
            writer.yield([3])
            writer.finish()
            let reply = try await upload
            #expect(reply.httpVersion == .http11 && !connections.contains(reply.text))
        }
    }

    @Test("with HTTP/2 permitted a server without it gets no more connections than there are requests at once")
    func withoutHTTP2() async throws {
        let nginx = try Nginx.shared
        try await withAgent(configuration()) { agent in
            try await all(2000) { _ = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls))) }
            let opened = agent.statistics.connectionsOpened
            #expect(opened <= 64, "\(opened) connections")
        }
    }

    private static var mixesStreams: Bool {
        typealias Version = @convention(c) () -> UnsafePointer<CChar>
        guard let version = dlsym(nil, "curl_version").map({ unsafeBitCast($0, to: Version.self)() }) else {
            return false
        }
        // libcurl/7.88.1 OpenSSL/…
        let numbers = String(cString: version).dropFirst(8).split(separator: ".").prefix(2).compactMap { Int($0) }
        return numbers.lexicographicallyPrecedes([8, 1])
    }

    @Test("large uploads arrive from a file and with an unknown length")
    func sources() async throws {
        let nginx = try Nginx.shared
        let folder = try ServerFolder()
        let bytes = Nginx.pattern(10 * 1024 * 1024)
        try folder.write(bytes, to: "upload")
        try await withAgent(configuration()) { agent in
            let file = HTTPRequest.echo(nginx.url("/echo", .http2), .put, body: .file(folder.file("upload")))
            let echo = try await agent.send(file).value
            #expect(echo.sha256 == sha256(bytes))
            let pieces = AsyncStream<[UInt8]> { continuation in
                for start in stride(from: 0, to: bytes.count, by: 100_000) {
                    continuation.yield(Array(bytes[start..<min(start + 100_000, bytes.count)]))
                }
                continuation.finish()
            }
            let stream = HTTPRequest.echo(nginx.url("/echo", .http2), .put, body: .stream(once: pieces))
            let streamed = try await agent.send(stream).value
            #expect(streamed.sha256 == sha256(bytes))
        }
    }

    @Test("compression, HEAD, 204, 304 and redirects work as over HTTP/1.1")
    func usual() async throws {
        let nginx = try Nginx.shared
        try await withAgent(configuration()) { agent in
            let long = try await agent.send(HTTPRequest.to(nginx.url("/long.txt", .http2)))
            #expect(long.bodyLength == 72_000 && long.metrics.bytesReceived < 5000)
            let head = try await agent.send(HTTPRequest.to(nginx.url("/64k.bin", .http2), .head))
            #expect(head.bodyLength == 0 && head.headers["Content-Length"] == "65536")
            let none = try await agent.send(HTTPRequest.to(nginx.url("/no-content", .http2)))
            #expect(none.status == 204)
            let redirected = try await agent.send(
                HTTPRequest.echo(nginx.url("/307", .http2), .post, body: .string("text")))
            #expect(redirected.value.length == 4 && redirected.redirects.count == 1)
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/private/secret.txt", .http2)))
            }
            #expect(error?.code == .invalidStatusCode(401))
        }
    }

    @Test("a cancelled stream leaves the others alone")
    func cancel() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let slow = (0..<10).map { _ in
                Task { try await agent.send(HTTPRequest.to(nginx.url("/slow/64k.bin?\(mark)", .http2))) }
            }
            try await all(50) { _ = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .http2))) }
            for run in slow.dropFirst(5) { run.cancel() }
            for run in slow.prefix(5) { #expect(try await run.value.bytes == Nginx.pattern(65_536)) }
            for run in slow.dropFirst(5) {
                let error = await #expect(throws: RequestError.self) { try await run.value }
                #expect(error?.code == .cancelled)
            }
            let lines = try await nginx.log(mark, count: 60)
            #expect(Set(lines.map(\.connection)).count <= 2)
        }
    }

    @Test("a reload of nginx under load fails no request: GOAWAY ends a connection gracefully")
    func reload() async throws {
        let nginx = try Nginx(.init(upstream: Upstream.shared.port))
        try await withAgent(configuration()) { agent in
            for _ in 0..<3 {
                let load = Task {
                    try await all(600) { _ = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .http2))) }
                }
                nginx.reload()
                try await load.value
            }
        }
    }

    @Test("without TLS it works by prior knowledge, if enabled")
    func priorKnowledge() async throws {
        let server = try FaultyHTTP2Server(isSecure: false)
        try await withAgent(configuration(.priorKnowledge)) { agent in
            let reply = try await agent.send(HTTPRequest.to(server.url("/bytes/1000")))
            #expect(reply.httpVersion == .http2 && reply.bytes == Nginx.pattern(1000))
        }
    }

    @Test("it works through squid's tunnel")
    func tunnel() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        var configuration = try configuration()
        configuration.proxy = .http("127.0.0.1", port: squid.port(.open))
        try await withAgent(configuration) { agent in
            try await all(50) {
                let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .http2)))
                #expect(reply.httpVersion == .http2)
            }
        }
    }

    /// `count` of them, 64 at once; throws the first failure.
    private func all(_ count: Int, _ send: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= 64 { try await group.next() }
                group.addTask { try await send() }
            }
            try await group.waitForAll()
        }
    }
}

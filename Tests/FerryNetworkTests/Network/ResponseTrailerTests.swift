import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Trailer fields of responses, in runs of several attempts and from the cache.
@Suite(.timeLimit(.minutes(1))) struct ResponseTrailerTests {
    private static func chunked(_ status: String, _ fields: String = "", _ trailers: String = "") -> String {
        "HTTP/1.1 \(status)\r\nTransfer-Encoding: chunked\r\n\(fields)\r\n2\r\nok\r\n0\r\n\(trailers)\r\n"
    }

    /// Of a 503, a redirect and a refused token.
    @Test(arguments: ["", "X-Last: 4\r\n"], [true, false])
    func thoseOfEarlierAttemptsAreNotThoseOfTheLast(trailers: String, isStreamed: Bool) async throws {
        let server = try LoopbackServer()
        _ = TokenServer(on: server)
        let moved = "Location: /y\r\n"
        let earlier = [("503 Busy", "", "X-A: 1"), ("307 Moved", moved, "X-B: 2"), ("401 No", "", "X-C: 3")]
        for (status, fields, trailer) in earlier {
            let path = status.hasPrefix("401") ? "/y" : "/x"
            server.script(path: path, uses: 1, [.send(Self.chunked(status, fields, trailer + "\r\n")), .serve])
        }
        server.script(path: "/y", [.send(Self.chunked("200 OK", "", trailers)), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.retryPolicy = .quick
        configuration.authenticator = Session(token: TokenServer.expired)
        let agent = NetworkAgent(configuration: configuration)
        let found: Headers
        if isStreamed {
            let response = try await agent.stream(Get("/x"))
            #expect(try await response.body.collect(upTo: 10) == Data("ok".utf8))
            found = response.body.trailers
        } else {
            let reply = try await agent.send(Get("/x"))
            #expect(reply.text == "ok" && reply.attempts == 4)
            found = reply.trailers
        }
        #expect(found.map(\.name) == (trailers.isEmpty ? [] : ["X-Last"]))
        await agent.shutdown()
    }

    /// libcurl answers the challenge in the same transfer.
    @Test func thoseOfAChallengeAreNotThoseOfTheResponse() async throws {
        let server = try LoopbackServer()
        let challenge = #"WWW-Authenticate: Digest realm="r", nonce="abc""# + "\r\n"
        server.script(path: "/x", uses: 1, [.send(Self.chunked("401 No", challenge, "X-A: 1\r\n")), .serve])
        server.script(path: "/x", [.send(Self.chunked("200 OK", "", "X-B: 2\r\n")), .serve])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let reply = try await agent.send(Full(authorization: .digest("kim", "pw")))
        #expect(reply.text == "ok" && reply.trailers.map(\.name) == ["X-B"])
        await agent.shutdown()
    }

    /// RFC 9110, 6.5.1: what belongs to the head has no effect behind the body.
    @Test func aCookieInTheTrailersIsNotKept() async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", [.send(Self.chunked("200 OK", "", "Set-Cookie: a=b\r\nLocation: /y\r\n")), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        #expect(try await agent.send(Get("/x")).trailers.count == 2)
        try await agent.send(Get("/hello"))
        #expect(agent.cookies.all.isEmpty && server.requests.last?.headers["Cookie"] == nil)
        await agent.shutdown()
    }

    /// Whether it comes from memory or from disk, and by either policy.
    @Test(
        arguments: [true, false],
        [CachePolicy.timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous)])
    func aCachedResponseHasNoTrailersAndNoInformationalResponses(memory: Bool, policy: CachePolicy) async throws {
        let (server, bench) = (try LoopbackServer(), CacheBench())
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
        let fields = "Cache-Control: max-age=60\r\n"
        server.script(path: "/chunked", [.send(hint + Self.chunked("200 OK", fields, "X-Sum: 1\r\n")), .serve])
        server.script(
            path: "/plain", [.send(hint + "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 2\r\n\r\nok"), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        if !memory { configuration.cache?.memoryBytes = 0 }
        let agent = NetworkAgent(configuration: configuration)
        for path in ["/chunked", "/plain"] {
            let request = Kept(path: path, cachePolicy: policy)
            let first = try await agent.send(request)
            #expect(!first.isFromCache && first.trailers.count == (path == "/chunked" ? 1 : 0))
            #expect(first.response.informational.map(\.status) == [103])
            let hit = try await agent.send(request)
            #expect(hit.isFromCache && hit.value == "ok")
            #expect(hit.trailers.isEmpty && hit.response.informational.isEmpty, "\(path)")
        }
        await agent.shutdown()
    }
}

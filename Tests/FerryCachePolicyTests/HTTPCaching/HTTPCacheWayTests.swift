import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http` in other ways than one whole response: streams, downloads, parts, heads, shared
/// transfers, and a refresh in the background that the shutdown meets.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheWayTests {
    private let bench = CacheBench()

    /// Serves ranges as well.
    private func ranged(_ control: String = "max-age=60") -> StubTransport {
        StubTransport { request in
            let body = Array("answer \(request.number)".utf8)
            var headers: Headers = ["Cache-Control": control, "ETag": "\"\(request.number)\""]
            guard request.headers["Range"] == "bytes=0-2" else { return .response(headers: headers, body: body) }
            headers["Content-Range"] = "bytes 0-2/\(body.count)"
            return .response(status: 206, headers: headers, body: Array(body[..<3]))
        }
    }

    @Test func aStreamNeitherUsesNorChangesTheStoredResponse() async throws {
        let agent = bench.agent(ranged())
        #expect(try await texts(agent, http()) == ["answer 1"])
        let streamed = try await agent.stream(http())
        #expect(!streamed.head.isFromCache)
        #expect(try await streamed.body.collect(upTo: 100) == Data("answer 2".utf8))
        #expect(try await texts(agent, http()) == ["cached answer 1"])
        await agent.shutdown()
    }

    @Test func aDownloadNeitherUsesNorChangesTheStoredResponse() async throws {
        let agent = bench.agent(ranged())
        #expect(try await texts(agent, http()) == ["answer 1"])
        let path = bench.path + ".download"
        defer { try? FileManager.default.removeItem(atPath: path) }
        _ = try await agent.download(http(), to: .file(path))
        #expect(FileManager.default.contents(atPath: path) == Data("answer 2".utf8))
        #expect(try await texts(agent, http()) == ["cached answer 1"])
        await agent.shutdown()
    }

    @Test func aPartOfTheServerDoesNotReplaceTheStoredWhole() async throws {
        let agent = bench.agent(ranged())
        let part = http(["Range": "bytes=0-2"])
        let asked = try await agent.send(part)
        #expect(asked.status == 206 && !asked.isFromCache && asked.cacheStatus?.isStored == false)
        #expect(try await texts(agent, http(), part) == ["answer 2", "cached ans"])
        bench.advance(by: .seconds(61))
        let again = try await agent.send(part)
        #expect(again.status == 206 && !again.isFromCache)
        await agent.shutdown()
    }

    @Test func headsAndWholeResponsesOfOneURLStayApart() async throws {
        let stub = StubTransport { request in
            let body = request.method == .head ? "" : "answer \(request.number)"
            return .response(headers: ["Cache-Control": "max-age=60", "Content-Length": "8"], body: body)
        }
        let agent = bench.agent(stub)
        #expect(try await agent.send(http(method: .head)).bodyLength == 0)
        #expect(try await agent.send(http(method: .head)).isFromCache)
        #expect(try await texts(agent, http(), http()) == ["answer 2", "cached answer 2"])
        let head = try await agent.send(http(method: .head))
        #expect(head.isFromCache && head.bodyLength == 0 && head.headers["Content-Length"] == "8")
        await agent.shutdown()
    }

    /// One of them is sent, and its 304 serves all.
    @Test func runsThatShareATransferShareItsValidation() async throws {
        let stub = StubTransport { request in
            request.number == 2
                ? .hold : .response(headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""], body: "answer")
        }
        let agent = bench.agent(stub)
        var request = http()
        request.coalesces = true
        _ = try await agent.send(request)
        bench.advance(by: .seconds(61))
        let runs = (0..<4).map { [request] _ in Task { try await agent.send(request) } }
        await stub.waitForHeld(1)
        #expect(await eventually { agent.core.sharedTransfers.waiting == 4 })
        stub.releaseAll(with: .response(status: 304, headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        for run in runs {
            let reply = try await run.value
            #expect(reply.value == "answer" && reply.cacheStatus?.forwardStatus == 304)
        }
        #expect(stub.requests.count == 2)
        #expect(try await texts(agent, request) == ["cached answer"])
        await agent.shutdown()
    }

    /// A validation by one transfer that continues as an exchange is still the same run.
    @Test(arguments: [true, false]) func aValidationThatIsRetriedKeepsItsIdempotencyKey(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 2: return .response(status: 503)
            case 3: return .redirect(to: "/y", status: 307)
            default:
                let isAsked = request.headers.contains("If-None-Match")
                return .response(
                    status: isAsked ? 304 : 200, headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""],
                    body: isAsked ? "" : "answer")
            }
        }
        let agent = bench.agent(stub) { $0.retryPolicy = .quick }
        var request = HTTPRequest(.get, "/x", as: String.self)
        (request.cachePolicy, request.idempotencyKey) = (.http(), .automatic)
        request.coalesces = !isPlain
        #expect(try await agent.send(request).value == "answer")
        bench.advance(by: .seconds(61))
        #expect(try await agent.send(request).value == "answer")
        let keys = stub.requests.map { $0.headers["Idempotency-Key"] ?? "" }
        #expect(keys.count == 4 && Set(keys[1...]).count == 1 && keys[0] != keys[1], "\(keys)")
        await agent.shutdown()
    }

    /// A stale response is served, and the server does not answer the refresh.
    @Test(arguments: [Duration.zero, .seconds(3600)]) func aRefreshInTheBackgroundEndsWithTheAgent(
        grace: Duration
    ) async throws {
        let control: Headers = ["Cache-Control": "max-age=60, stale-while-revalidate=600", "ETag": "\"a\""]
        let stub = StubTransport { request in
            request.number == 2 ? .hold : .response(headers: control, body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == ["answer 1"])
        bench.advance(by: .seconds(100))
        let stale = try await agent.send(http())
        #expect(stale.value == "answer 1" && stale.response.isStale)
        await stub.waitForHeld(1)
        let end = Task { await agent.shutdown(grace: grace) }
        if grace > .zero {
            #expect(await eventually { agent.core.isClosed })
            stub.releaseAll(with: .response(status: 304, headers: control))
        }
        await end.value
        #expect(agent.core.isAtRest && stub.requests.count == 2)
        // What it has stored is there for the next agent.
        let next = bench.agent(ranged())
        #expect(try await texts(next, http()) == ["cached answer 1"])
        await next.shutdown()
    }

    /// The jar gets a cookie from the redirect, so the owner of its target is unknown.
    @Test func aRedirectThatSetsACookieLeadsToNothingStored() async throws {
        let server = try LoopbackServer()
        server.handle("/x") { _ in
            LoopbackResponse(
                status: 301, headers: ["Location": "/y", "Set-Cookie": "a=b", "Cache-Control": "max-age=60"])
        }
        server.handle("/y") { request in
            LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: request.headers["Cookie"] ?? "none")
        }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        configuration.cache = CacheConfiguration(directory: bench.path)
        let agent = NetworkAgent(configuration: configuration)
        #expect(try await texts(agent, http()) == ["a=b"])
        agent.cookies.removeAll()
        #expect(try await texts(agent, http(path: "/y")) == ["none"])
        await agent.shutdown()
    }

    @Test func whatVariesByAnythingIsNeitherStoredNorKeptByAnother() async throws {
        let stub = StubTransport { request in
            let vary = request.number == 2 ? "*" : "Accept"
            return .response(headers: ["Cache-Control": "max-age=60", "Vary": vary], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let (a, b) = (http(["Accept": "a"]), http(["Accept": "b"]))
        #expect(try await texts(agent, a, b, b, a) == ["answer 1", "answer 2", "answer 3", "cached answer 1"])
        await agent.shutdown()
    }
}

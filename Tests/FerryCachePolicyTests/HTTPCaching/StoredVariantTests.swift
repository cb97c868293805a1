import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Variants of a URL, and what requests that cannot refresh a stored response leave to others.
@Suite(.timeLimit(.minutes(1))) struct StoredVariantTests {
    private let bench = CacheBench()

    private func kept(_ headers: Headers = Headers(), mode: CacheMode = .cacheElseNetwork) -> Kept {
        Kept(
            headers: headers, cachePolicy: .http(write: .synchronous), cacheMode: mode, statusValidation: .any)
    }

    private func speaking(_ language: String) -> Headers { ["Accept-Language": language] }

    /// A server with a text for each language. Its tag is that of a version, whatever the language is.
    private func multilingual(holds: String? = nil) -> StubTransport {
        StubTransport { request in
            let language = request.headers["Accept-Language"] ?? ""
            let fields: Headers = ["ETag": "W/\"5\"", "Vary": "Accept-Language", "Cache-Control": "max-age=60"]
            guard request.headers.contains("If-None-Match") else {
                return .response(headers: fields, body: "in \(language)")
            }
            return language == holds ? .hold : .response(status: 304, headers: fields)
        }
    }

    /// RFC 9111, 4.3.4: only responses that the request could have selected are confirmed.
    @Test func aWeakTagDoesNotMakeOneLanguageAnother() async throws {
        let agent = bench.agent(multilingual())
        #expect(try await texts(agent, kept(speaking("en")), kept(speaking("de"))) == ["in en", "in de"])
        bench.advance(by: .seconds(70))
        for language in ["en", "de"] {
            let validated = try await agent.send(kept(speaking(language)))
            #expect(validated.value == "in \(language)" && validated.cacheStatus?.forwardStatus == 304)
        }
        #expect(try await texts(agent, kept(speaking("en")), kept(speaking("de"))) == ["cached in en", "cached in de"])
        await agent.shutdown()
    }

    @Test func aReloadLeavesTheOtherVariants() async throws {
        let agent = bench.agent(multilingual(), memory: false)
        _ = try await texts(agent, kept(speaking("en")), kept(speaking("de")))
        #expect(try await texts(agent, kept(speaking("en"), mode: .reload)) == ["in en"])
        #expect(try await texts(agent, kept(speaking("de"), mode: .cacheOnly)) == ["cached in de"])
        await agent.shutdown()
    }

    @Test func aSlowValidationOfOneVariantDelaysNoOther() async throws {
        let stub = multilingual(holds: "en")
        let agent = bench.agent(stub)
        _ = try await texts(agent, kept(speaking("en")), kept(speaking("de")))
        bench.advance(by: .seconds(70))
        let slow = Task { [request = kept(speaking("en"))] in try await agent.send(request).value }
        await stub.waitForHeld(1)
        #expect(try await agent.send(kept(speaking("de"))).value == "in de")
        stub.releaseAll(with: .response(status: 304, headers: ["ETag": "W/\"5\""]))
        #expect(try await slow.value == "in en")
        await agent.shutdown()
    }

    /// Agents with different values of the field share a directory.
    @Test(arguments: [true, false]) func theUserAgentOfTheConfigurationSelectsTheVariant(isHTTP: Bool) async throws {
        func agent(_ name: String) -> NetworkAgent {
            let stub = StubTransport { request in
                .response(
                    headers: ["Vary": "User-Agent", "Cache-Control": "max-age=60"],
                    body: "for \(request.headers["User-Agent"] ?? "")")
            }
            return bench.agent(stub) { $0.headers = ["User-Agent": name] }
        }
        let (mobile, other) = (agent("Mobile"), agent("Other"))
        var request = kept()
        if !isHTTP { request.cachePolicy = .timeToLive(.seconds(60), write: .synchronous) }
        #expect(try await texts(mobile, request) == ["for Mobile"])
        #expect(try await texts(other, request, request) == ["for Other", "cached for Other"])
        if isHTTP { #expect(try await texts(mobile, request) == ["cached for Mobile"]) }
        await mobile.shutdown()
        await other.shutdown()
    }

    // MARK: Parts

    private func ranged(_ control: String, holds: Bool = false) -> StubTransport {
        StubTransport { request in
            let fields: Headers = ["ETag": "\"a\"", "Cache-Control": control]
            if request.headers.contains("Range") {
                if holds { return .hold }
                let part: Headers = ["ETag": "\"a\"", "Content-Range": "bytes 0-1/8"]
                return .response(status: 206, headers: part, body: "an")
            }
            if request.headers.contains("If-None-Match") { return .response(status: 304, headers: fields) }
            return .response(headers: fields, body: "answer \(request.number)")
        }
    }

    @Test func noRunWaitsForTheRequestOfAPart() async throws {
        let stub = ranged("max-age=60", holds: true)
        let agent = bench.agent(stub)
        _ = try await texts(agent, kept())
        bench.advance(by: .seconds(70))
        let part = Task { [request = kept(["Range": "bytes=0-1"])] in try await agent.send(request).value }
        await stub.waitForHeld(1)
        #expect(try await agent.send(kept()).value == "answer 1")
        stub.releaseAll(with: .response(status: 206, headers: ["Content-Range": "bytes 0-1/8"], body: "an"))
        #expect(try await part.value == "an")
        await agent.shutdown()
    }

    /// It could not refresh the stored response in the background.
    @Test func thePartOfAStaleResponseComesFromTheServer() async throws {
        let stub = ranged("max-age=60, stale-while-revalidate=600")
        let agent = bench.agent(stub)
        _ = try await texts(agent, kept())
        bench.advance(by: .seconds(70))
        let part = try await agent.send(kept(["Range": "bytes=0-1"]))
        #expect(part.value == "an" && part.cacheStatus?.isCollapsed == false)
        #expect(stub.requests.count == 2)
        #expect(try await texts(agent, kept()) == ["cached answer 1"])
        #expect(await eventually { stub.requests.count == 3 })
        #expect(stub.requests.last?.headers["If-None-Match"] == "\"a\"")
        await agent.shutdown()
    }

    // MARK: Waiting

    /// RFC 5861, 4
    @Test func aRunThatWaitsForAValidationUntilItsDeadlineGetsTheStaleResponse() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(
                headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60, stale-if-error=600"], body: "answer 1")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, kept())
        bench.advance(by: .seconds(70))
        let first = Task { [request = kept()] in try await agent.send(request).value }
        await stub.waitForHeld(1)
        var second = kept()
        second.deadline = .milliseconds(100)
        let reply = try await agent.send(second)
        #expect(reply.value == "answer 1" && reply.isFromCache)
        stub.releaseAll(with: .response(status: 304, headers: ["ETag": "\"a\""]))
        #expect(try await first.value == "answer 1")
        await agent.shutdown()
    }

    // MARK: Keys

    /// The server chooses the URLs of redirects.
    @Test func longURLsCountForTheLimitOfTheMemory() async throws {
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = bench.agent(stub) { $0.cache?.memoryBytes = 200_000 }
        for number in 0..<20 {
            var request = kept()
            request.path = "/\(number)/" + String(repeating: "x", count: 60_000)
            _ = try await agent.send(request)
        }
        let statistics = await agent.cache.statistics
        #expect((1...3).contains(statistics.memoryEntries), "\(statistics)")
        await agent.shutdown()
    }

    // MARK: Reports

    /// Apache's tags of compressed responses are an example: the 304 has another tag.
    @Test func aValidationThatConfirmsNothingIsReportedAsReceived() async throws {
        let stub = StubTransport { request in
            let fields: Headers = ["ETag": request.number == 2 ? "\"a\"" : "\"a-gzip\"", "Cache-Control": "no-cache"]
            return request.number == 2
                ? .response(status: 304, headers: fields)
                : .response(headers: fields, body: "answer \(request.number)")
        }
        let log = KeptLog()
        let agent = bench.agent(stub) { $0.logSink = log }
        #expect(try await texts(agent, kept(), kept()) == ["answer 1", "answer 3"])
        await agent.shutdown()
        let received = log.entries.filter { $0.message == "received" }
        #expect(received.count == 3, "\(received)")
    }
}

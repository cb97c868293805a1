import FerryCache
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: an older response never takes the place of a newer one.
@Suite(.timeLimit(.minutes(1))) struct CacheCurrencyTests {
    private let bench = CacheBench()

    private func kept(_ headers: Headers = Headers(), method: HTTPMethod = .get, mode: CacheMode? = nil) -> Kept {
        var request = Kept(
            method: method, headers: headers, cachePolicy: .http(write: .synchronous), statusValidation: .any)
        if let mode { request.cacheMode = mode }
        return request
    }

    /// A run whose request is held. The responses to later ones depend on the language.
    private func held(
        inMemory: Bool
    ) async -> (stub: StubTransport, agent: NetworkAgent, run: Task<Reply<String>, any Error>) {
        let stub = StubTransport { request in
            let headers: Headers = ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
            return request.number == 1 ? .hold : .response(headers: headers, body: "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: inMemory)
        let run = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        return (stub, agent, run)
    }

    /// RFC 9111, 4.3.4: only what could serve the request may be confirmed. All languages have the same date.
    @Test func a304WithADateConfirmsNoResponseToAnotherRequest() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let stub = StubTransport { request in
            let headers: Headers = ["Last-Modified": date, "Vary": "Accept-Language", "Cache-Control": "max-age=60"]
            if request.headers.contains("If-Modified-Since") { return .response(status: 304, headers: headers) }
            return .response(headers: headers, body: request.headers["Accept-Language"] ?? "")
        }
        let agent = bench.agent(stub)
        func language(_ name: String, asks: Bool = false) -> Kept {
            kept(asks ? ["Accept-Language": name, "If-Modified-Since": date] : ["Accept-Language": name])
        }
        #expect(try await texts(agent, language("de"), language("en")) == ["de", "en"])
        bench.advance(by: .seconds(60))
        #expect(try await agent.send(language("de", asks: true)).response.status == 304)
        #expect(try await texts(agent, language("de")) == ["cached de"])
        #expect(try await agent.send(language("fr", asks: true)).response.status == 304)
        #expect(try await texts(agent, language("fr")) == ["fr"])
        await agent.shutdown()
    }

    /// RFC 5861, 4: what stood in for a validation is not used after its result has forbidden that.
    @Test(arguments: ["no-store", "must-revalidate"])
    func aStandInIsForgottenWithTheResultOfAnotherRun(word: String) async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1:
                .response(
                    headers: ["ETag": "\"a\"", "Cache-Control": "max-age=10, stale-if-error=600"], body: "old")
            case 2: .hold
            default: .response(status: 503)
            }
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        let request = kept()
        let first = Task { try await agent.send(request) }
        await stub.waitForHeld(1)
        let second = Task { try await agent.send(request) }
        #expect(await eventually { agent.core.cache?.validations.waiting == 1 })
        stub.releaseAll(
            with: word == "no-store"
                ? .response(headers: ["Cache-Control": "no-store"], body: "new")
                : .response(status: 304, headers: ["ETag": "\"a\"", "Cache-Control": "max-age=0, must-revalidate"]))
        _ = try await first.value
        let reply = try await second.value
        #expect(reply.response.status == 503 && !reply.isFromCache)
        await agent.shutdown()
    }

    @Test func afterTheClockWasSetBackANewResponseReplacesTheOld() async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=600"]))
        #expect(try await texts(agent, kept()) == ["answer 1"])
        bench.advance(by: .seconds(-500))
        #expect(try await texts(agent, kept(), kept()) == ["answer 2", "cached answer 2"])
        bench.advance(by: .seconds(501))
        #expect(try await texts(agent, kept()) == ["cached answer 2"])
        await agent.shutdown()
    }

    /// The newer response is on disk only.
    @Test(arguments: [true, false]) func anEarlierResponseThatComesLaterIsNotStored(inMemory: Bool) async throws {
        let (stub, agent, first) = await held(inMemory: inMemory)
        let other = kept(["Accept-Language": "de"])
        #expect(try await texts(agent, other, kept()) == ["answer 2", "answer 3"])
        stub.releaseAll(
            with: .response(
                headers: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"], body: "old"))
        #expect(try await first.value.value == "old")
        #expect(try await texts(agent, kept(), other) == ["cached answer 3", "cached answer 2"])
        await agent.shutdown()
    }

    /// The response to the earlier request has no `Vary`, so it would serve all requests.
    @Test(arguments: [true, false]) func anEarlierResponseWithAnotherVaryIsNotStored(inMemory: Bool) async throws {
        let (stub, agent, first) = await held(inMemory: inMemory)
        #expect(try await texts(agent, kept()) == ["answer 2"])
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=60"], body: "old"))
        #expect(try await first.value.value == "old")
        #expect(try await texts(agent, kept()) == ["cached answer 2"])
        await agent.shutdown()
    }

    /// It would serve the later request, too, if it came first.
    @Test func anEarlierResponseForAllStaysBehindALaterOneForSome() async throws {
        let (stub, agent, first) = await held(inMemory: true)
        let german = kept(["Accept-Language": "de"])
        #expect(try await texts(agent, german) == ["answer 2"])
        bench.advance(by: .seconds(1))
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=60"], body: "old"))
        #expect(try await first.value.value == "old")
        #expect(try await texts(agent, german, kept()) == ["cached answer 2", "cached old"])
        await agent.shutdown()
    }

    /// A response to HEAD serves no GET.
    @Test func aLaterHEADDoesNotKeepAGETFromBeingStored() async throws {
        let fields: Headers = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
        let stub = StubTransport { $0.number == 1 ? .hold : .response(headers: fields) }
        let agent = bench.agent(stub)
        let first = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(method: .head))
        stub.releaseAll(with: .response(headers: fields, body: "whole"))
        _ = try await first.value
        #expect(try await texts(agent, kept()) == ["cached whole"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5: the responses to HEAD and GET have different tags, and the later request counts.
    @Test(arguments: [HTTPMethod.get, .head]) func aResponseOfAnEarlierVersionIsNotStored(earlier: HTTPMethod)
        async throws
    {
        @Sendable func fields(_ number: Int) -> Headers { ["Cache-Control": "max-age=60", "ETag": "\"\(number)\""] }
        let stub = StubTransport { request in
            request.number == 1 ? .hold : .response(headers: fields(request.number), body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let first = Task { [request = kept(method: earlier, mode: .reload)] in try await agent.send(request) }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(method: earlier == .get ? .head : .get))
        stub.releaseAll(with: .response(headers: fields(1), body: "old"))
        _ = try await first.value
        let later = earlier == .get ? "answer 3" : "cached answer 2"
        #expect(try await texts(agent, kept()) == [later])
        await agent.shutdown()
    }

    /// Both are 304s to validations that have not waited for each other.
    @Test func theLater304Counts() async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1: .response(headers: ["Cache-Control": "max-age=5", "ETag": "\"a\""], body: "answer 1")
            case 2: .hold
            default: .response(status: 304, headers: ["Cache-Control": "no-cache", "ETag": "\"a\""])
            }
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(5))
        let first = Task { [request = kept(mode: .revalidate)] in try await agent.send(request) }
        await stub.waitForHeld(1)
        bench.advance(by: .seconds(1))
        #expect(try await agent.send(kept(mode: .revalidate)).value == "answer 1")
        stub.releaseAll(with: .response(status: 304, headers: ["Cache-Control": "max-age=600", "ETag": "\"a\""]))
        _ = try await first.value
        #expect(try await texts(agent, kept()) == ["answer 1"])
        #expect(stub.requests.count == 4)
        await agent.shutdown()
    }

    /// The server has taken the response back while it was being validated.
    @Test(arguments: [true, false], [true, false])
    func a304DoesNotBringBackWhatWasRemoved(inMemory: Bool, isPlain: Bool) async throws {
        let stub = StubTransport { request in
            if request.number == 3 { return .hold }
            let language = request.headers["Accept-Language"] ?? ""
            var headers: Headers = ["Cache-Control": "max-age=100", "Vary": "Accept-Language"]
            headers["ETag"] = "\"\(language)\""
            if request.number > 2 { headers = ["Cache-Control": "no-store"] }
            return .response(headers: headers, body: "\(language) \(request.number)")
        }
        let agent = bench.agent(stub, memory: inMemory)
        func language(_ name: String, mode: CacheMode? = nil) -> Kept {
            var request = kept(["Accept-Language": name], mode: mode)
            if isPlain { request.cachePolicy = .http() }
            return request
        }
        for name in ["de", "en"] { _ = try await agent.send(kept(["Accept-Language": name])) }
        bench.advance(by: .seconds(100))
        let first = Task { [request = language("de")] in try await agent.send(request) }
        await stub.waitForHeld(1)
        #expect(try await texts(agent, language("de", mode: .reload)) == ["de 4"])
        stub.releaseAll(
            with: .response(
                status: 304,
                headers: ["ETag": "\"de\"", "Cache-Control": "max-age=100", "Vary": "Accept-Language"]))
        #expect(try await first.value.value == "de 1")
        #expect(try await texts(agent, kept(["Accept-Language": "de"])) == ["de 5"])
        await agent.shutdown()
    }

    /// The order is that of the requests, also of one that has not looked into the cache before it was sent.
    @Test(arguments: [true, false], [true, false])
    func theOrderOfAReloadIsThatOfItsRequest(inMemory: Bool, reloadIsFirst: Bool) async throws {
        let server = try LoopbackServer()
        let gates = [Gate(), Gate()]
        server.handle("/x") { request in
            let number = request.headers["X-Number"].flatMap { Int($0) } ?? 0
            if number > 0 { await gates[number - 1].pass() }
            return LoopbackResponse(headers: ["Cache-Control": "max-age=60"], body: Array("answer \(number)".utf8))
        }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        if !inMemory { configuration.cache?.memoryBytes = 0 }
        let agent = NetworkAgent(configuration: configuration)
        let reload = Task { [request = kept(["X-Number": "1"], mode: .reload)] in try await agent.send(request) }
        #expect(await eventually { gates[0].arrived > 0 })
        let plain = Task { [request = kept(["X-Number": "2"])] in try await agent.send(request) }
        #expect(await eventually { gates[1].arrived > 0 })
        for number in reloadIsFirst ? [1, 2] : [2, 1] {
            gates[number - 1].open()
            _ = try await (number == 1 ? reload : plain).value
        }
        #expect(try await texts(agent, kept()) == ["cached answer 2"])
        await agent.shutdown()
        server.stop()
    }

    /// A 304 that comes after the response to a later request says nothing of that one.
    @Test func a304ThatComesLaterDoesNotBringTheOldResponseBack() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(
                headers: ["Cache-Control": "max-age=100", "ETag": "\"\(request.number)\""],
                body: "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: false)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(100))
        let first = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        #expect(try await texts(agent, kept(mode: .reload)) == ["answer 3"])
        stub.releaseAll(
            with: .response(status: 304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=100"]))
        #expect(try await first.value.value == "answer 1")
        #expect(try await texts(agent, kept()) == ["cached answer 3"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.4: the server has changed it as soon as it says so.
    @Test(arguments: ["body", "bound"]) func aResponseToPOSTThatBreaksOffInvalidates(way: String) async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/x") { request in
            LoopbackResponse(headers: ["Cache-Control": "max-age=60"], body: Array("\(request.path)".utf8))
        }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        if way == "bound" { configuration.limits.maxBodyBytes = 100 }
        let agent = NetworkAgent(configuration: configuration)
        #expect(try await texts(agent, kept(), kept()) == ["/x", "cached /x"])
        let length = way == "bound" ? 200 : 10
        server.script(
            path: "/x", uses: 1,
            [.expectHead, .send("HTTP/1.1 201 Created\r\nContent-Length: \(length)\r\n\r\nabc"), .close])
        let code = await fault { try await agent.send(kept(method: .post)) }
        #expect(code == (way == "bound" ? .responseTooLarge : .incompleteBody(expected: 10, got: 3)))
        #expect(try await texts(agent, kept()) == ["/x"])
        await agent.shutdown()
        server.stop()
    }

    /// The key of a response is that of the token that was accepted.
    @Test func aRefusedTokenIsNoPartOfTheKey() async throws {
        let stub = StubTransport { request in
            if request.headers["Authorization"] == "1" { return .response(status: 401) }
            return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub) { $0.authenticator = Numbered() }
        let request = kept()
        #expect(try await texts(agent, request, request) == ["answer 2", "cached answer 2"])
        await agent.shutdown()
    }

    /// Every token is one more than the last.
    private struct Numbered: Authenticator {
        var token: Int? { 1 }
        func apply(_ token: Int, to request: inout OutgoingRequest) { request.headers["Authorization"] = "\(token)" }
        func refresh(_ old: Int?, with agent: NetworkAgent) -> Int { (old ?? 0) + 1 }
    }

    /// RFC 9111, 5.2.1.7
    @Test func onlyIfCachedNeverUsesTheNetwork() async throws {
        let stub = counting()
        let agent = bench.agent(stub)
        let only: Headers = ["Cache-Control": "only-if-cached"]
        for request in [kept(only), kept(only, method: .post), kept(only, mode: .reload)] {
            #expect(try await agent.send(request).response.status == 504)
        }
        #expect(stub.requests.isEmpty)
        await agent.shutdown()
    }

    /// A response that may not be stored says nothing of the response to a later request.
    @Test func anEarlierResponseThatIsNotStoredRemovesNoLaterOne() async throws {
        let (stub, agent, first) = await held(inMemory: true)
        #expect(try await texts(agent, kept()) == ["answer 2"])
        stub.releaseAll(with: .response(status: 404, headers: ["Cache-Control": "no-store"]))
        #expect(try await first.value.response.status == 404)
        #expect(try await texts(agent, kept()) == ["cached answer 2"])
        await agent.shutdown()
    }

    @Test func theOrderOfOldStoresIsForgotten() throws {
        let stores = RecentStores()
        let variant = try #require(
            StoredVariant.result(status: 200, [Headers.Field(name: "Cache-Control", value: "max-age=60")]).map {
                StoredVariant(
                    $0, StoredVariant.Times(request: 0, response: 0, initialAge: 0), isHead: false, isDecoded: false,
                    varying: [], variance: .none, isShared: false)
            })
        func key(_ number: Int) -> CacheKey { CacheKey(Array("\(number)".utf8)) }
        let (first, second) = (stores.next(), stores.next())
        stores.note(variant, under: key(0), sent: second)
        #expect(stores.isNoted(key(0), since: second) && !stores.isNoted(key(1), since: first))
        #expect(stores.hasNewer(under: key(0), than: first, isHead: false) { $0.isEmpty && $1 == .none })
        #expect(!stores.hasNewer(under: key(0), than: second, isHead: false) { _, _ in true })
        let third = stores.next()
        #expect(!stores.isNoted(key(0), since: third))
        for number in 1...10_000 { stores.note(variant, under: key(number), sent: stores.next()) }
        #expect(stores.isNoted(key(0), since: third), "it is no longer known")
        #expect(!stores.hasNewer(under: key(0), than: first, isHead: false) { $0.isEmpty && $1 == .none })
        #expect(!stores.isNoted(key(0), since: stores.next()))
    }
}

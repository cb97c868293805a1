import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs that get a response without the network.
@Suite struct InterceptorTests {
    private func agent(
        _ interceptors: [any RequestInterceptor],
        _ stub: StubTransport = StubTransport(always: .response(body: "network")),
        _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.interceptors = interceptors
        change(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    private func answering(_ text: String) -> Intercept {
        Intercept { _, _ in InterceptedResponse(headers: ["X-From": text], body: Data(text.utf8)) }
    }

    @Test func theFirstThatAnswersIsTheLastThatIsAsked() async throws {
        let book = Logbook()
        let silent = Intercept { _, _ in
            book.note("silent")
            return nil
        }
        let never = Intercept { _, _ in
            book.note("never")
            return nil
        }
        let stub = StubTransport(always: .response(body: "network"))
        let reply = try await agent([silent, answering("first"), never], stub).send(Get())
        #expect(reply.text == "first" && reply.headers == ["X-From": "first"] && reply.url == "http://h/x")
        #expect(book.events == ["silent"])
        #expect(stub.requests.isEmpty)
    }

    @Test func whoeverPassesOnLeavesItToTheNetwork() async throws {
        let reply = try await agent([Intercept { _, _ in nil }, Intercept { _, _ in nil }]).send(Get())
        #expect(reply.text == "network" && !reply.isFromCache)
    }

    @Test func theySeeWhatTheAdaptersMade() async throws {
        let book = Logbook()
        let look = Intercept { request, run in
            book.note("\(request.method) \(request.url) \(request.headers["X-A"] ?? "") \(run.url)")
            return nil
        }
        let agent = agent([look]) {
            $0.adapters = [Adapt { request, _ in request.headers["X-A"] = "1" }]
        }
        try await agent.send(Full(method: .put, arguments: ["a": 1], argumentEncoding: .query))
        #expect(book.events == ["PUT http://h/x?a=1 1 http://h/x?a=***"])
    }

    @Test func anAnswerFromNoNetworkSaysSo() async throws {
        let reply = try await agent([answering("x")]).send(Get())
        #expect(reply.attempts == 0 && reply.peer == nil && !reply.isReusedConnection && !reply.isFromCache)
        let metrics = reply.metrics
        #expect(metrics.attempts == 0 && metrics.bytesReceived == 0 && metrics.httpVersion == nil)
    }

    @Test func oneFromACacheSaysSoToAll() async throws {
        let book = Logbook()
        let cached = Intercept { _, _ in InterceptedResponse(status: 203, body: Data("x".utf8), isFromCache: true) }
        let agent = agent([cached]) { $0.observers = [LoggingObserver("o", book)] }
        let reply = try await agent.send(Get())
        #expect(reply.isFromCache && reply.status == 203)
        #expect(book.events == ["o willStart", "o metrics", "o willStop cached", "o didStop cached"])
    }

    @Test func theStatusIsValidatedAsAnyOther() async {
        let agent = agent([Intercept { _, _ in InterceptedResponse(status: 404, body: Data("no".utf8)) }])
        do throws(RequestError) {
            try await agent.send(Get())
            Issue.record("404 was accepted")
        } catch {
            #expect(error.code == .invalidStatusCode(404))
            #expect(error.response?.body == Array("no".utf8))
            #expect(!error.mayHaveBeenProcessed && error.attempts == 0, "no server has seen it")
        }
    }

    @Test func valuesAreMadeOfTheirAnswers() async throws {
        let json = Intercept { _, _ in InterceptedResponse(body: Data(#"{"nick":"kim","level":3}"#.utf8)) }
        #expect(try await agent([json]).send(UserInfo(id: 1)).value == User(nick: "kim", level: 3))
        let wrong = Intercept { _, _ in InterceptedResponse(body: Data("[]".utf8)) }
        #expect(await code { () throws(RequestError) in try await agent([wrong]).send(UserInfo(id: 1)) } == .decoding)
    }

    @Test(arguments: [
        (200, ["X": "a\r\nEvil: 1\r\n\r\n"]), (200, ["X Y": "a"]), (200, ["": "a"]), (200, ["X": "a\0b"]), (99, [:]),
        (1000, [:]), (-1, [:]), (100, [:]),
    ])
    func whatIsNoHeadIsMalformed(_ status: Int, _ headers: [String: String]) async {
        let fields = Headers(headers.map { Headers.Field(name: $0, value: $1) })
        let agent = agent([Intercept { _, _ in InterceptedResponse(status: status, headers: fields) }])
        #expect(
            await code { () throws(RequestError) in try await agent.send(Get()) }.map { .malformedResponse ~= $0 }
                == true)
    }

    @Test func whatTheyThrowFailsTheRun() async {
        let stub = StubTransport(always: .response())
        #expect(
            await code { () throws(RequestError) in
                try await agent([Intercept { _, _ in throw Oops() }], stub).send(Get())
            } == .applicationError)
        #expect(
            await code { () throws(RequestError) in
                try await agent([Intercept { _, _ in throw RequestError(.dns(.notFound)) }], stub).send(Get())
            } == .dns(.notFound))
        #expect(stub.requests.isEmpty)
    }

    @Test func redirectsOfTheirsAreFollowedAndTheirsToAnswer() async throws {
        let book = Logbook()
        let hop = Intercept { request, _ in
            book.note(request.url)
            return request.url.hasSuffix("/x") ? InterceptedResponse(status: 302, headers: ["Location": "/y"]) : nil
        }
        let stub = StubTransport(always: .response(body: "network"))
        let reply = try await agent([hop], stub).send(Get())
        #expect(book.events == ["http://h/x", "http://h/y"], "asked for every attempt, redirects included")
        #expect(stub.requests.map(\.url) == ["http://h/y"])
        #expect(reply.text == "network" && reply.redirects.count == 1 && reply.attempts == 1)
        #expect(reply.metrics.attempts == 1 && reply.metrics.redirects == 1, "it was sent once")
    }

    /// Each responds with a redirect to the next, or with an error: `n` stands for the network, `i` for an interceptor.
    @Test(arguments: [
        ("in", 1), ("ni", 1), ("nn", 1), ("ii", 0), ("nin", 1), ("inn", 1), ("nnn", 1), ("iin", 1),
    ])
    func aSendingBehindARedirectIsNoAttemptOfItsOwn(_ places: String, _ attempts: Int) async throws {
        let places = Array(places)
        @Sendable func answer(_ index: Int) -> (status: Int, location: String?) {
            index + 1 < places.count ? (302, "/\(index + 1)") : (404, nil)
        }
        let interceptor = Intercept { request, _ in
            guard let index = request.url.last?.wholeNumberValue, places[index] == "i" else { return nil }
            let (status, location) = answer(index)
            return InterceptedResponse(status: status, headers: location.map { ["Location": $0] } ?? [:])
        }
        let stub = StubTransport { request in
            let (status, location) = answer(request.url.last?.wholeNumberValue ?? 0)
            return location.map { .redirect(to: $0) } ?? .response(status: status)
        }
        let agent = agent([interceptor], stub)
        var request = HTTPRequest(.get, "/0")
        request.statusValidation = .any
        let metrics = try await agent.send(request).metrics
        #expect(metrics.attempts == attempts && metrics.redirects == places.count - 1)
        request.statusValidation = nil
        let sent = places.count { $0 == "n" }
        do throws(RequestError) {
            try await agent.send(request)
        } catch {
            #expect(error.attempts == sent && error.facts.measured?.attempts == attempts)
        }
    }

    @Test func theirFailuresAreRetried() async throws {
        let count = Mutex(0)
        let busy = Intercept { _, _ in
            let now = count.withLock { count in
                count += 1
                return count
            }
            return now < 3 ? InterceptedResponse(status: 503) : nil
        }
        let stub = StubTransport(always: .response(body: "network"))
        let agent = agent([busy], stub) { $0.retryPolicy = .exponential(maxAttempts: 5, baseDelay: .zero) }
        let reply = try await agent.send(Get())
        #expect(count.withLock { $0 } == 3 && stub.requests.count == 1)
        #expect(reply.text == "network" && reply.attempts == 1)
    }

    @Test func closuresGetTheirAnswersOnTheirQueue() async throws {
        let stub = StubTransport(always: .response())
        let agent = agent([answering("x")], stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        #expect(try await outcome.result.get().text == "x")
        await agent.shutdown()
        #expect(task.state == .finished && outcome.count == 1 && stub.requests.isEmpty)
    }

    @Test func credentialsInAnAdaptedURLAreNotTheResponses() async throws {
        let agent = agent([answering("x")]) {
            $0.adapters = [Adapt { request, _ in request.url = "http://kim:canary@other/y" }]
        }
        #expect(try await agent.send(Get()).url == "http://other/y")
    }

    @Test func largeBodiesComeWhole() async throws {
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        let agent = agent([Intercept { _, _ in InterceptedResponse(body: Data(bytes)) }])
        #expect(try await agent.send(Get()).bytes == bytes)
    }
}

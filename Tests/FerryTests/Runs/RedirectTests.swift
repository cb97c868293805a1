import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Redirects of runs; the decisions are tested with the machine.
@Suite struct RedirectTests {
    private func agent(
        _ answers: [StubTransport.Response], _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> (NetworkAgent, StubTransport) {
        var configuration = NetworkConfiguration.test
        change(&configuration)
        let stub = StubTransport(responses: answers)
        return (NetworkAgent(configuration: configuration, stub: stub), stub)
    }

    @Test func aChainIsFollowedToItsEnd() async throws {
        let (agent, stub) = agent([
            .redirect(to: "/b", status: 301), .redirect(to: "c?q=1", status: 302),
            .redirect(to: "http://h/d", status: 307),
            .redirect(to: "//h/e", status: 308), .response(body: "there"),
        ])
        let reply = try await agent.send(Get("/a"))
        #expect(reply.text == "there")
        #expect(reply.url == "http://h/e")
        #expect(stub.requests.map(\.url) == ["/a", "/b", "/c?q=1", "/d", "/e"].map { "http://h\($0)" })
        #expect(reply.redirects.map(\.status) == [301, 302, 307, 308])
        #expect(reply.redirects.map(\.target) == ["http://h/b", "http://h/c?q=***", "http://h/d", "http://h/e"])
        #expect(reply.attempts == 5)
        #expect(reply.metrics.redirects == 4 && reply.metrics.attempts == 1, "its metrics are the run's")
    }

    @Test func byClosureToo() async throws {
        let (agent, stub) = agent([.redirect(to: "/b"), .response(body: "there")])
        let outcome = Outcome<Response>()
        let task = agent.start(Get("/a"), completion: outcome.take)
        #expect(try await outcome.result.get().text == "there")
        await agent.shutdown()
        #expect(task.state == .finished && outcome.count == 1)
        #expect(stub.requests.count == 2)
    }

    @Test func oneMoreThanTheLimitFails() async {
        let (agent, stub) = agent([.redirect(to: "/x", headers: ["X-Kept": "1"])]) {
            $0.redirectPolicy = .follow(upTo: 3)
        }
        do throws(RequestError) {
            try await agent.send(Get())
            Issue.record("a loop came to an end")
        } catch {
            #expect(error.code == .tooManyRedirects)
            #expect(error.response?.status == 302)
            #expect(error.response?.headers["X-Kept"] == "1")
            #expect(error.attempts == 4)
        }
        #expect(stub.requests.count == 4)
    }

    @Test func theLimitIsTenByDefault() async {
        let (agent, stub) = agent([.redirect(to: "/x")])
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .tooManyRedirects)
        #expect(stub.requests.count == 11)
    }

    @Test func theRequestsPolicyWins() async throws {
        let (agent, stub) = agent([.redirect(to: "/b")])
        var request = HTTPRequest(.get, "/x")
        request.statusValidation = .any
        request.redirectPolicy = RedirectPolicy.none
        #expect(try await agent.send(request).status == 302)
        #expect(stub.requests.count == 1)
        let (lenient, other) = self.agent([.redirect(to: "/b"), .response()]) { $0.redirectPolicy = .none }
        request.redirectPolicy = .follow()
        #expect(try await lenient.send(request).status == 200)
        #expect(other.requests.count == 2)
    }

    private var secrets: Headers {
        [
            "Authorization": "canary", "Cookie": "canary", "Proxy-Authorization": "canary", "X-Api-Key": "canary",
            "X-Own": "canary", "X-Plain": "kept",
        ]
    }

    @Test(arguments: ["http://other/x", "http://h:81/x"])
    func secretsStayBehindWhenTheOriginChanges(_ location: String) async throws {
        let (agent, stub) = agent([.redirect(to: location), .redirect(to: "http://h/back"), .response()]) {
            $0.headers = secrets
            $0.sensitiveHeaders = ["x-api-key"]
            $0.redirectPolicy = .follow(sensitiveHeaders: ["X-Own"])
        }
        try await agent.send(Get())
        #expect(stub.requests[0].headers.count == 6)
        for request in stub.requests.dropFirst() { #expect(request.headers == ["X-Plain": "kept"]) }
    }

    @Test func theConfigurationsSecretsHoldForTheRequestsPolicyToo() async throws {
        let (agent, stub) = agent([.redirect(to: "http://other/x"), .response()]) {
            $0.headers = ["X-Api-Key": "canary"]
            $0.sensitiveHeaders = ["x-api-key"]
        }
        var request = HTTPRequest(.get, "/x")
        request.redirectPolicy = .follow(upTo: 1)
        try await agent.send(request)
        #expect(stub.requests.map(\.headers.count) == [1, 0])
    }

    @Test func aPriorityThatWasChangedHoldsForWhatFollows() async throws {
        let stub = StubTransport(responses: [.hold, .redirect(to: "/z"), .response(status: 503), .response()])
        var configuration = NetworkConfiguration.test
        configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(priority: .low), completion: outcome.take)
        await stub.waitForHeld(1)
        task.setPriority(.high)
        stub.releaseAll(with: .redirect(to: "/y"))
        #expect(try await outcome.result.get().attempts == 4)
        #expect(stub.requests.dropFirst().map(\.priority) == [.high, .high, .high])
    }

    @Test func secretsGoOnWithinTheOrigin() async throws {
        let (agent, stub) = agent([.redirect(to: "/y"), .response()]) { $0.headers = secrets }
        try await agent.send(Get())
        #expect(stub.requests[1].headers == stub.requests[0].headers)
    }

    @Test func seeOtherMakesAGetWithoutTheBody() async throws {
        let (agent, stub) = agent([.redirect(to: "/y", status: 303), .response()])
        try await agent.send(Full(method: .post, headers: ["X": "1"], body: .json(["a": 1])))
        let (first, last) = (stub.requests[0], stub.requests[1])
        #expect(first.hasBody && first.headers["Content-Type"] == "application/json")
        #expect(last.method == .get && !last.hasBody && last.headers == ["X": "1"])
        #expect(!first.isIdempotent && last.isIdempotent)
    }

    @Test func temporaryRedirectsKeepMethodAndBody() async throws {
        let (agent, stub) = agent([.redirect(to: "/y", status: 307), .response()])
        try await agent.send(Full(method: .post, body: .json(["a": 1])))
        let last = stub.requests[1]
        #expect(last.method == .post && last.text == #"{"a":1}"# && last.headers["Content-Type"] == "application/json")
        #expect(!last.isIdempotent)
    }

    @Test func argumentsAndFiltersAreNotAddedAgain() async throws {
        let (agent, stub) = agent([.redirect(to: "/y"), .response()]) {
            $0.urlFilters = [ArgumentsFilter(["v": 1])]
        }
        try await agent.send(Full(arguments: ["a": 1]))
        #expect(stub.requests.map(\.url) == ["http://h/x?v=1&a=1", "http://h/y"])
    }

    @Test func timeoutsAndPriorityHoldOnTheWay() async throws {
        var request = HTTPRequest(.get, "/x")
        request.timeouts = Timeouts(connect: .seconds(1), idle: .seconds(2))
        request.priority = .low
        let (agent, stub) = agent([.redirect(to: "/y"), .response()])
        try await agent.send(request)
        #expect(stub.requests[1].timeouts.connect == 1000 && stub.requests[1].timeouts.idle == 2000)
        #expect(stub.requests[1].priority == .low)
    }

    @Test func theDeadlineIsOverTheWholeWay() async throws {
        let (agent, stub) = agent([.redirect(to: "/y"), .response()])
        try await agent.send(Full(deadline: .seconds(3600)))
        let (first, last) = (stub.requests[0].timeouts.deadline, stub.requests[1].timeouts.deadline)
        #expect(first == 3_600_000)
        #expect(try #require(last) <= 3_600_000)
    }

    @Test func otherSchemesAreNotFollowed() async {
        let (agent, stub) = agent([.redirect(to: "file:///etc/passwd")])
        #expect(
            await code { () throws(RequestError) in try await agent.send(Get()) } == .redirectForbidden(.scheme))
        #expect(stub.requests.count == 1)
    }

    @Test func theRuleIsAsked() async throws {
        let hops = Mutex<[String]>([])
        let (agent, stub) = agent([.redirect(to: "/y"), .redirect(to: "http://other/"), .response()]) {
            $0.redirectPolicy = .follow { hop in
                hops.withLock { $0.append(hop.target) }
                return hop.isSameOrigin ? .follow : .refuse
            }
        }
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .redirectForbidden(.policy))
        #expect(hops.withLock { $0 } == ["http://h/y", "http://other/"])
        #expect(stub.requests.count == 2)
    }

    @Test func observersSeeOneRunAndItsRedirects() async throws {
        struct Look: RequestObserver {
            let book: Logbook
            func willStart(_ run: RunInfo) { book.note("willStart \(run.url)") }
            func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
                book.note("metrics \(metrics.redirects) \(metrics.attempts)")
            }
            func willStop(_ run: RunInfo, _ outcome: RunOutcome) { book.note("willStop \(run.url)") }
        }
        let book = Logbook()
        let (agent, _) = agent([.redirect(to: "/y"), .response()]) { $0.observers = [Look(book: book)] }
        try await agent.send(Get())
        #expect(book.events == ["willStart http://h/x", "metrics 1 1", "willStop http://h/x"])
    }
}

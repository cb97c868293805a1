import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Requests that are changed before they are sent.
@Suite struct AdapterTests {
    private func agent(
        _ adapters: [any RequestAdapter], _ stub: StubTransport,
        _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.adapters = adapters
        change(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    private func seen(_ request: some Request, _ adapters: [any RequestAdapter]) async throws -> StubTransport.Request {
        let stub = StubTransport(always: .response())
        try await agent(adapters, stub).send(request)
        return try #require(stub.requests.first)
    }

    private func append(_ text: String) -> Adapt {
        Adapt { request, _ in
            await Task.yield()
            request.headers["X-Trace"] = (request.headers["X-Trace"] ?? "") + text
        }
    }

    @Test func theyRunInTheirOrderOnOneAnothersResult() async throws {
        let request = try await seen(Get(), [append("a"), append("b"), append("c")])
        #expect(request.headers == ["X-Trace": "abc"])
    }

    @Test func theySeeTheWholeRequest() async throws {
        let book = Logbook()
        let look = Adapt { request, run in
            let body = request.body.map { "\($0)" } ?? "none"
            book.note("\(request.method) \(request.url) \(request.headers.fields.map { "\($0.name): \($0.value)" })")
            book.note(body.isEmpty ? "no body" : "a body")
            book.note("\(run.method?.rawValue ?? "") \(run.url)")
        }
        var configuration = NetworkConfiguration.test
        configuration.headers = ["X-Common": "1"]
        configuration.urlFilters = [ArgumentsFilter(["v": 1])]
        configuration.adapters = [look]
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(Full(method: .post, arguments: ["a": 1], authorization: .bearer("t")))
        #expect(
            book.events == [
                #"POST http://h/x?v=1 ["X-Common: 1", "Content-Type: application/x-www-form-urlencoded", "#
                    + #""Authorization: Bearer t"]"#,
                "a body", "POST http://h/x?v=***",
            ])
        #expect(stub.requests[0].text == "a=1" && stub.requests[0].headers.count == 3)
    }

    @Test func everythingCanBeChanged() async throws {
        let request = try await seen(
            Full(method: .get, headers: ["X-Old": "1"]),
            [
                Adapt { request, _ in
                    request.method = .put
                    request.url = "https://other:8443/y?z#f"
                    request.headers = ["X-New": "2"]
                    request.body = .string("new", contentType: "text/new")
                }
            ])
        #expect(request.method == .put && request.url == "https://other:8443/y?z#f")
        #expect(request.headers == ["X-New": "2", "Content-Type": "text/new"])
        #expect(request.text == "new")
        #expect(!request.hasBody || request.isIdempotent, "PUT is idempotent")
    }

    @Test func anotherServerGetsNoSecretOfTheConfiguration() async throws {
        func sent(
            to url: String, key: String? = nil, base: String? = nil, configured: String? = "http://kim:canary@h"
        ) async throws -> Headers {
            let adapter = Adapt { request, _ in
                request.url = url
                if let key { request.headers["X-Key"] = key }
            }
            let stub = StubTransport(always: .response())
            let agent = agent([adapter], stub) {
                $0.baseURL = configured
                $0.cdnURL = configured.map { _ in "http://cdn" }
                $0.headers = ["X-Key": "canary", "X-Public": "1"]
                $0.sensitiveHeaders = ["X-Key"]
            }
            try await agent.send(Full(path: "/x", baseURL: base, headers: ["X-Own": "2"]))
            return try #require(stub.requests.first).headers
        }
        let moved = try await sent(to: "http://mirror/x")
        #expect(moved == ["X-Public": "1", "X-Own": "2"])
        let named = try await sent(to: "http://mirror/x", base: "http://u:canary@own")
        #expect(named == moved)
        // Without servers in the configuration, its own fields go to any server.
        let alone = try await sent(to: "http://mirror/x", base: "http://u:canary@own", configured: nil)
        #expect(alone["Authorization"] == nil && alone["X-Key"] == "canary")
        let keyed = try await sent(to: "http://mirror/x", key: "theirs")
        #expect(keyed["X-Key"] == "theirs" && keyed["Authorization"] == nil)
        for url in ["http://H:80/y", "http://cdn/y"] {
            let kept = try await sent(to: url)
            #expect(kept["X-Key"] == "canary" && kept["Authorization"] != nil, "\(url)")
        }
    }

    @Test func theResponseSaysWhereItCameFrom() async throws {
        let stub = StubTransport(always: .response())
        let agent = agent([Adapt { request, _ in request.url = "http://kim:canary@other/y" }], stub)
        let reply = try await agent.send(Get())
        #expect(reply.url == "http://other/y")
        #expect(stub.requests[0].url == "http://other/y")
        #expect(stub.requests[0].headers["Authorization"] == "Basic a2ltOmNhbmFyeQ==")
    }

    @Test func aMethodOfTheirsSaysWhetherItMayBeSentTwice() async throws {
        #expect(try await seen(Get(), [append("a")]).isIdempotent)
        #expect(try await !seen(Get(), [Adapt { request, _ in request.method = .post }]).isIdempotent)
        #expect(try await seen(Full(method: .post), [Adapt { request, _ in request.method = .get }]).isIdempotent)
    }

    @Test func aBodyCanBeTakenAway() async throws {
        let request = try await seen(
            Full(method: .delete, body: .string("x")), [Adapt { request, _ in request.body = nil }])
        #expect(!request.hasBody)
        #expect(request.headers["Content-Type"] == "text/plain; charset=utf-8", "headers are theirs to take away too")
    }

    @Test func aBodyOfTheirsBringsItsContentType() async throws {
        let json = Full(method: .post, body: .json(["a": 1]))
        func type(_ request: some Request, _ adapters: (@Sendable (inout OutgoingRequest) -> Void)...) async throws
            -> String?
        {
            try await seen(request, adapters.map { change in Adapt { request, _ in change(&request) } })
                .headers["Content-Type"]
        }
        #expect(try await type(json, { $0.body = .string("e", contentType: "application/jose") }) == "application/jose")
        let form = Full(method: .post, arguments: ["a": 1])
        #expect(
            try await type(form, { $0.body = .multipart(Multipart()) })?.hasPrefix("multipart/form-data; boundary")
                == true)
        // The next adapter sees it, and may set another.
        let second: @Sendable (inout OutgoingRequest) -> Void = {
            let before = $0.headers["Content-Type"] ?? "none"
            $0.body = .string("f", contentType: before + "+2")
        }
        #expect(try await type(json, { $0.body = .string("e", contentType: "a/b") }, second) == "a/b+2")
        // Bytes without a declared type are the same body in another form; and a type set by hand stays.
        #expect(try await type(json, { $0.body = .bytes([1]) }) == "application/json")
        #expect(
            try await type(
                json,
                {
                    $0.headers["Content-Type"] = "x/y"
                    $0.body = .string("e")
                }) == "x/y")
        let own = Full(method: .post, headers: ["Content-Type": "own/type"], body: .json(["a": 1]))
        #expect(try await type(own, { $0.body = .string("e") }) == "own/type")
    }

    @Test func prebuiltRequestsPassThemToo() async throws {
        struct Own: Request {
            var path: String { "/ignored" }
            var prebuiltRequest: OutgoingRequest? {
                OutgoingRequest(method: .patch, url: "http://own/x", body: .string("x"))
            }
        }
        let request = try await seen(Own(), [append("a")])
        #expect(request.method == .patch && request.url == "http://own/x" && request.text == "x")
        #expect(request.headers["X-Trace"] == "a")
    }

    @Test func theyAreAskedAnewForEveryAttempt() async throws {
        let count = Mutex(0)
        let number = Adapt { request, _ in
            let now = count.withLock { count in
                count += 1
                return count
            }
            request.headers["X-Attempt"] = String(now)
        }
        let stub = StubTransport(responses: [.response(status: 503), .failure(.connectionReset), .response()])
        let agent = agent([number], stub) { $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .zero) }
        try await agent.send(Get())
        #expect(stub.requests.map { $0.headers["X-Attempt"] } == ["1", "2", "3"])
    }

    @Test func redirectsPassThemBy() async throws {
        let count = Mutex(0)
        let stub = StubTransport(responses: [.redirect(to: "/y"), .response()])
        try await agent([Adapt { _, _ in count.withLock { $0 += 1 } }], stub).send(Get())
        #expect(count.withLock { $0 } == 1)
        #expect(stub.requests.count == 2)
    }

    @Test func requestsAndAdaptersSeeOneRun() async throws {
        let ids = LoggingObserver.Ids()
        var configuration = NetworkConfiguration.test
        configuration.adapters = [Adapt { _, run in ids.append(run.id) }]
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        _ = await outcome.result
        #expect(ids.all == [task.id], "without an observer too")
    }

    @Test func whatTheyThrowFailsTheRun() async {
        let stub = StubTransport(always: .response())
        do throws(RequestError) {
            try await agent([Adapt { _, _ in throw Oops() }], stub).send(Get())
            Issue.record("it was sent")
        } catch {
            #expect(error.code == .applicationError)
            #expect(error.cause is Oops)
            #expect(error.url == "http://h/x")
            #expect(error.attempts == 0 && !error.mayHaveBeenProcessed)
        }
        let own = RequestError(.tls(.expired), phase: .tls, message: "of their own")
        do throws(RequestError) {
            try await agent([Adapt { _, _ in throw own }, append("never")], stub).send(Get())
        } catch {
            #expect(error.code == .tls(.expired) && error.message == "of their own")
        }
        #expect(
            await code { () throws(RequestError) in
                try await agent([Adapt { _, _ in throw CancellationError() }], stub).send(Get())
            } == .cancelled)
        #expect(stub.requests.isEmpty)
    }

    @Test func whatTheyThrowLaterSpeaksOfWhatWasSent() async {
        let count = Mutex(0)
        let second = Adapt { _, _ in
            let now = count.withLock { count in
                count += 1
                return count
            }
            if now == 2 { throw Oops() }
        }
        let stub = StubTransport(always: .response(status: 503))
        let agent = agent([second], stub) { $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .zero) }
        do throws(RequestError) {
            try await agent.send(Get())
            Issue.record("it came through")
        } catch {
            #expect(error.code == .applicationError)
            #expect(error.attempts == 1 && error.mayHaveBeenProcessed)
        }
    }

    @Test func theyRunBeforeItsCallbacksFail() async {
        let book = Logbook()
        let stub = StubTransport(always: .response())
        let agent = agent(
            [
                Adapt { _, _ in
                    book.note("adapt"); throw Oops()
                }
            ], stub
        ) {
            $0.observers = [LoggingObserver("o", book)]
        }
        let outcome = Outcome<Response>()
        let task = agent.start(LoggedRequest(book), completion: outcome.take)
        #expect(await outcome.code == .applicationError)
        await agent.shutdown()
        #expect(task.state == .failed)
        #expect(
            book.events == [
                "o willStart", "adapt", "failurePreprocessor applicationError", "o metrics", "o willStop failed",
                "willDeliver applicationError", "o didStop failed",
            ])
    }

    private static let impossible: [(OutgoingRequest, RequestError.Code)] = [
        (OutgoingRequest(method: "A B", url: "http://h/x"), .invalidRequest(.method)),
        (OutgoingRequest(url: "http://h/x", headers: ["X": "a\r\nEvil: 1"]), .invalidRequest(.headerValue)),
        (OutgoingRequest(url: "http://h/x", headers: ["X Y": "a"]), .invalidRequest(.headerName)),
        (OutgoingRequest(url: "http://h/x", headers: ["Content-Length": "5"]), .invalidRequest(.framing)),
        (OutgoingRequest(url: "http://h/x", headers: ["Transfer-Encoding": "chunked"]), .invalidRequest(.framing)),
        (OutgoingRequest(url: "http://h/a b"), .invalidURL), (OutgoingRequest(url: ""), .invalidURL),
        (OutgoingRequest(url: "/x"), .unsupportedScheme),
        (OutgoingRequest(url: "file:///etc/passwd"), .unsupportedScheme),
    ]

    @Test(arguments: impossible) func whatCannotBeSentIsRefused(_ made: OutgoingRequest, _ expected: RequestError.Code)
        async
    {
        let stub = StubTransport(always: .response())
        let agent = agent([Adapt { request, _ in request = made }], stub)
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == expected)
        #expect(stub.requests.isEmpty)
    }

    @Test func aRequestThatCannotBeBuiltIsNotShownToThem() async {
        let count = Mutex(0)
        let stub = StubTransport(always: .response())
        let agent = agent([Adapt { _, _ in count.withLock { $0 += 1 } }], stub)
        #expect(await code { () throws(RequestError) in try await agent.send(Get("http:// h")) } == .invalidURL)
        #expect(count.withLock { $0 } == 0)
    }

    @Test func theQueueIsBoundedWithThemToo() async {
        let gate = AsyncStream<Void>.makeStream()
        let stub = StubTransport(always: .hold)
        let wait = Adapt { request, _ in
            if request.url.hasSuffix("/slow") { for await _ in gate.stream { break } }
        }
        let agent = agent([wait], stub) {
            $0.limits.maxConcurrentTransfers = 2
            $0.limits.queueLength = 1
        }
        let outcomes = (0..<3).map { _ in Outcome<Response>() }
        agent.start(Get("/slow"), completion: outcomes[0].take)
        agent.start(Get(), completion: outcomes[1].take)
        await stub.waitForHeld(1)
        agent.start(Get("/slow"), completion: outcomes[2].take)
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .queueFull)
        gate.continuation.finish()
        await stub.waitForHeld(3)
        stub.releaseAll()
        for outcome in outcomes { #expect(await outcome.code == nil) }
        let last = Outcome<Response>()
        agent.start(Get(), completion: last.take)
        await stub.waitForHeld(1)
        stub.releaseAll()
        #expect(await last.code == nil, "there is room again")
    }

    @Test func statesGoOnFromWaiting() async {
        let gate = AsyncStream<Void>.makeStream()
        let stub = StubTransport(always: .hold)
        let entered = Logbook()
        let agent = agent(
            [
                Adapt { _, _ in
                    entered.note("in")
                    for await _ in gate.stream { break }
                }
            ], stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        await entered.waitForEntries(1)
        #expect(task.state == .running)
        task.setPriority(.high)
        gate.continuation.finish()
        await stub.waitForHeld(1)
        #expect(stub.requests[0].priority == .high, "its place was changed before it was sent")
        task.setPriority(.low)
        // It is passed on once the transfer has its id, which may be a moment after it was seen.
        #expect(await eventually { stub.held.first?.priority == .low })
        stub.releaseAll()
        #expect(await outcome.code == nil)
        await agent.shutdown()
        #expect(task.state == .finished)
    }
}

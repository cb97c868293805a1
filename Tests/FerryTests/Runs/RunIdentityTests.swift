import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A run has one identity in all reports, and nothing is left of it.
@Suite(.timeLimit(.minutes(1))) struct RunIdentityTests {
    private func agent(_ stub: StubTransport, _ observers: [any RequestObserver] = []) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.observers = observers
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    @Test func everyCallNamesTheSameRun() async {
        let book = Logbook()
        let (common, own) = (LoggingObserver.Ids(), LoggingObserver.Ids())
        let agent = agent(StubTransport(always: .response()), [LoggingObserver("c", book, ids: common)])
        var request = LoggedRequest(book)
        request.observers = [LoggingObserver("o", book, ids: own)]
        let outcome = Outcome<Response>()
        let task = agent.start(request, completion: outcome.take)
        await agent.shutdown()
        #expect(common.all == Array(repeating: task.id, count: 4))
        #expect(own.all == common.all)
    }

    @Test func runsOfOneRequestHaveIdsOfTheirOwn() async throws {
        let book = Logbook()
        let ids = LoggingObserver.Ids()
        let agent = agent(StubTransport(always: .response()), [LoggingObserver("c", book, ids: ids)])
        let request = LoggedRequest(book)
        try await agent.send(request)
        try await agent.send(request)
        let outcome = Outcome<Response>()
        agent.start(request, completion: outcome.take)
        await agent.shutdown()
        #expect(Set(ids.all).count == 3 && ids.all.count == 12)
    }

    @Test func oneDescriptionRunsAnyNumberOfTimesAtOnce() async {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        let request = LoggedRequest(Logbook())
        let outcomes = (0..<10).map { _ in Outcome<Response>() }
        let tasks = outcomes.map { agent.start(request, completion: $0.take) }
        await stub.waitForHeld(10)
        tasks[3].cancel()
        stub.releaseAll()
        for (index, outcome) in outcomes.enumerated() { #expect(await outcome.code == (index == 3 ? .cancelled : nil)) }
    }

    @Test func everyHookIsCalledOnce() async {
        let book = Logbook()
        let agent = agent(StubTransport { .response(status: $0.url.hasSuffix("/bad") ? 500 : 200) })
        for path in ["/good", "/bad"] {
            let outcome = Outcome<Response>()
            agent.start(LoggedRequest(book, path: path), completion: outcome.take)
            _ = await outcome.result
            _ = await code { () throws(RequestError) in try await agent.send(LoggedRequest(book, path: path)) }
        }
        await agent.shutdown()
        let counts = Dictionary(grouping: book.events, by: { $0 }).mapValues(\.count)
        #expect(
            counts == [
                "value": 2, "completionPreprocessor": 2, "willDeliver": 2,
                "failurePreprocessor invalidStatusCode": 2, "willDeliver invalidStatusCode": 2,
            ])
    }

    @Test func callbacksOfOneTurnAreHandedOverTogetherToEachQueue() async {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        let queues = [DispatchQueue(label: "test.a"), DispatchQueue(label: "test.b")]
        let order = Mutex<[[Int]]>([[], []])
        for number in 0..<40 {
            let which = number % 2
            agent.start(Get("/\(number)"), on: queues[which]) { _ in
                order.withLock { $0[which].append(number) }
                // A block queued after the first callback runs after all callbacks of the turn.
                if number < 2 { queues[which].async { order.withLock { $0[which].append(-1) } } }
            }
        }
        await stub.waitForHeld(40)
        stub.releaseAll()
        await agent.shutdown(grace: .seconds(3600))
        for queue in queues { queue.sync {} }
        #expect(stub.handOvers == [40])
        #expect(order.withLock { $0 } == [0, 1].map { which in stride(from: which, to: 40, by: 2) + [-1] })
    }

    @Test func callbacksNeverOverlap() async {
        let agent = agent(StubTransport(always: .response()))
        let inside = Mutex((now: 0, most: 0))
        let outcomes = (0..<200).map { _ in Outcome<Response>() }
        for outcome in outcomes {
            agent.start(Get()) { result in
                inside.withLock { inside in
                    inside.now += 1
                    inside.most = max(inside.most, inside.now)
                }
                inside.withLock { $0.now -= 1 }
                outcome.take(result)
            }
        }
        for outcome in outcomes { _ = await outcome.result }
        #expect(inside.withLock { $0.most } == 1)
    }

    @Test func aBlockedCallbackQueueHoldsUpNobodyElse() async throws {
        let stub = StubTransport(always: .response())
        let agent = agent(stub)
        let blocked = DispatchQueue(label: "test.blocked")
        blocked.suspend()
        let late = Outcome<Response>()
        agent.start(Get(), on: blocked, completion: late.take)
        try await agent.send(Get())
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        #expect(await outcome.code == nil)
        #expect(late.count == 0)
        blocked.resume()
        #expect(await late.code == nil)
    }

    @Test func metricsAreThoseOfTheRun() async throws {
        struct Look: RequestObserver {
            let seen: @Sendable (RequestMetrics) -> Void
            func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { seen(metrics) }
        }
        let all = Mutex<[RequestMetrics]>([])
        let look = Look { metrics in all.withLock { $0.append(metrics) } }
        let stub = StubTransport { $0.url.hasSuffix("/held") ? .hold : .response(body: "body") }
        let agent = agent(stub, [look])
        try await agent.send(Get())
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        _ = await outcome.result
        let cancelled = Outcome<Response>()
        let task = agent.start(Get("/held"), completion: cancelled.take)
        await stub.waitForHeld(1)
        task.cancel()
        _ = await cancelled.result
        _ = await code { () throws(RequestError) in try await agent.send(Get("http:// h")) }
        let metrics = all.withLock { $0 }
        #expect(metrics.count == 4)
        #expect(metrics[0].attempts == 1 && metrics[0].processing != nil && metrics[0].decoding != nil)
        #expect(metrics[0].bytesReceived == metrics[1].bytesReceived && metrics[0].bytesReceived > 4)
        #expect(metrics[2].processing == nil)
        #expect(metrics[3].attempts == 0 && metrics[3].bytesSent == 0)
    }

    // MARK: Nothing is left

    /// An object that a request holds, and that is freed with the last copy of the request. It reports when it is
    /// freed.
    private final class Token: Sendable {
        private let end: AsyncStream<Never>.Continuation

        init(_ end: AsyncStream<Never>.Continuation) { self.end = end }

        deinit { end.finish() }
    }

    private struct Holding: Request {
        let token: Token
        var path: String { "/x" }
    }

    private final class Screen: RequestDelegate {}

    private struct Watch: RequestObserver {
        let token: Token
    }

    /// Runs `body` with a token that nothing else holds, and waits until it is freed: a queue may still be releasing
    /// the block that held it. If it is never freed, the test ends by its time limit.
    private func isGone(_ body: (Token) async throws -> Void) async rethrows -> Bool {
        let (stream, end) = AsyncStream.makeStream(of: Never.self)
        weak var gone: Token?
        do {
            let token = Token(end)
            gone = token
            try await body(token)
        }
        for await _ in stream {}
        return gone == nil
    }

    @Test func requestsGoWhenTheirResultIsDelivered() async throws {
        let agent = agent(StubTransport(responses: [.redirect(to: "/y"), .response()]))
        #expect(try await isGone { try await agent.send(Holding(token: $0)) })
        let tasks = Mutex<[RequestTask<Response>]>([])
        #expect(
            await isGone { token in
                let outcome = Outcome<Response>()
                let task = agent.start(Get()) { result in withExtendedLifetime(token) { outcome.take(result) } }
                tasks.withLock { $0.append(task) }
                _ = await outcome.result
                agent.core.callbackQueue.sync {}
            }, "the closure is released, whoever keeps the task")
    }

    private struct HoldingMore: Request {
        let token: Token
        let path = "/x"
        let tag: String? = "tag"
        let method = HTTPMethod.post
        var body: RequestBody? { .string("body") }
        var observers: [any RequestObserver] { [Watch(token: token)] }
    }

    /// A request of a class may keep its task: that would be a cycle.
    @Test(arguments: [200, 404]) func aTaskThatIsKeptHoldsNothingOfItsRequest(status: Int) async {
        let agent = agent(StubTransport(always: .response(status: status)))
        let tasks = Mutex<[RequestTask<Response>]>([])
        let isGone = await isGone { token in
            let outcome = Outcome<Response>()
            let task = agent.start(HoldingMore(token: token), completion: outcome.take)
            tasks.withLock { $0.append(task) }
            _ = await outcome.result
        }
        #expect(isGone)
        let task = tasks.withLock { $0[0] }
        #expect(task.state == (status == 200 ? .finished : .failed) && task.tag == "tag" && task.id > 0)
        #expect(task.metrics.attempts == 1)
        // Nobody is left to be told.
        task.cancel()
        task.setPriority(.high)
        await agent.shutdown()
    }

    @Test(arguments: [200, 404]) func aDownloadTaskThatIsKeptHoldsNothingOfItsRequest(status: Int) async throws {
        let agent = agent(StubTransport(always: .response(status: status)))
        let folder = try Folder()
        let tasks = Mutex<[DownloadTask]>([])
        let isGone = await isGone { token in
            let end = OneShot<Void>()
            let target = DownloadTarget.file(folder.file("f"))
            let task = agent.download(HoldingMore(token: token), to: target, completion: { _ in end.finish(()) })
            tasks.withLock { $0.append(task) }
            await end.value()
        }
        #expect(isGone)
        #expect(tasks.withLock { $0[0].state } == (status == 200 ? .finished : .failed))
        await agent.shutdown()
    }

    @Test func aTaskThatIsKeptHoldsNoObserverOfItsGroup() async {
        let agent = agent(StubTransport(always: .response()))
        let tasks = Mutex<[RequestTask<[Response]>]>([])
        let isGone = await isGone { token in
            let end = OneShot<Void>()
            let task = agent.start(BatchRequest([Get("/a")]).observed(by: Watch(token: token))) { _ in end.finish(()) }
            tasks.withLock { $0.append(task) }
            await end.value()
        }
        #expect(isGone)
        await agent.shutdown()
    }

    @Test func theClosureForTheProgressGoesWithTheResult() async throws {
        let server = try LoopbackServer()
        let folder = try Folder()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let kept = Mutex<[any Sendable]>([])
        func isReleased(_ start: (Token, @escaping @Sendable () -> Void) -> any Sendable) async -> Bool {
            await isGone { token in
                let end = OneShot<Void>()
                let task = start(token) { end.finish(()) }
                kept.withLock { $0.append(task) }
                await end.value()
                agent.core.callbackQueue.sync {}
            }
        }
        #expect(
            await isReleased { token, end in
                agent.start(
                    HTTPRequest(.post, "/upload", body: .string("abc")),
                    uploadProgress: { _ in withExtendedLifetime(token) {} }, completion: { _ in end() })
            })
        #expect(
            await isReleased { token, end in
                agent.start(
                    BatchRequest([Get("/hello")]), progress: { _ in withExtendedLifetime(token) {} },
                    completion: { _ in end() })
            })
        #expect(
            await isReleased { token, end in
                agent.download(
                    Get("/bytes/100"), to: .file(folder.file("f")),
                    progress: { _ in withExtendedLifetime(token) {} }, completion: { _ in end() })
            })
        await agent.shutdown()
    }

    @Test func cancelledAndFailedRunsLeaveNothing() async throws {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        #expect(
            await isGone { token in
                let outcome = Outcome<Response>()
                let task = agent.start(Holding(token: token), completion: outcome.take)
                await stub.waitForHeld(1)
                task.cancel()
                _ = await outcome.result
                agent.core.callbackQueue.sync {}
            })
        #expect(
            await isGone { token in
                let task = Task { _ = try? await agent.send(Holding(token: token)) }
                await stub.waitForHeld(1)
                task.cancel()
                await task.value
            })
        #expect(agent.core.state.withLock { $0.table.count == 0 && $0.undelivered == 0 && !$0.isHeld })
    }

    @Test func adaptedAndRedirectedRunsLeaveNothing() async throws {
        var configuration = NetworkConfiguration.test
        configuration.adapters = [Adapt { _, _ in await Task.yield() }]
        configuration.interceptors = [Intercept { _, _ in nil }]
        let agent = NetworkAgent(
            configuration: configuration,
            stub: StubTransport { $0.url.hasSuffix("/y") ? .response() : .redirect(to: "/y") })
        #expect(try await isGone { try await agent.send(Holding(token: $0)) })
        #expect(
            await isGone { token in
                let outcome = Outcome<Response>()
                agent.start(Holding(token: token), completion: outcome.take)
                _ = await outcome.result
                agent.core.callbackQueue.sync {}
            })
        #expect(agent.core.state.withLock { $0.controls.isEmpty && !$0.isHeld && $0.resting == 0 })
    }

    @Test func agentsGoWithTheirConfiguration() async throws {
        let isGone = try await isGone { token in
            var configuration = NetworkConfiguration.test
            configuration.observers = [Watch(token: token)]
            configuration.adapters = [Adapt { _, _ in withExtendedLifetime(token) {} }]
            let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
            try await agent.send(Get())
            let outcome = Outcome<Response>()
            agent.start(Get(), completion: outcome.take)
            _ = await outcome.result
        }
        #expect(isGone, "also without a shutdown")
    }

    @Test func delegatesAreNotKept() async {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        weak var gone: Screen?
        do {
            let screen = Screen()
            gone = screen
            agent.start(Get(), delegate: screen)
            await stub.waitForHeld(1)
        }
        #expect(gone == nil)
        stub.releaseAll()
        await agent.shutdown()
    }
}

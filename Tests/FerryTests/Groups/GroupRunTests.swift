import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Batches and chains as runs: how they are started, observed and delivered.
@Suite(.timeLimit(.minutes(1))) struct GroupRunTests {
    @Test func closuresGetTheirResultOnceOnTheirQueue() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let queue = DispatchQueue(label: "test")
        let outcome = KeptResult<(String, Int)>()
        let task = agent.start(BatchRequest(Echo("a"), Count(number: 1)).tagged("T"), on: queue) { result in
            dispatchPrecondition(condition: .onQueue(queue))
            outcome.take(result)
        }
        #expect(try await outcome.result.get() == ("a", 1))
        await agent.shutdown()
        #expect(outcome.count == 1)
        #expect(task.state == .finished)
        #expect(task.tag == "T")
        #expect(task.progress == GroupProgress(finished: 2, total: 2))
        #expect(task.uploadProgress == nil)
        task.cancel()
        task.setPriority(.high)
        #expect(task.state == .finished)
    }

    @Test func idsAreUniqueInTheAgent() async {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let batch = BatchRequest([Echo("a")])
        let tasks = (0..<5).map { _ in agent.start(batch) { _ in } }
        let request = agent.start(Echo("a")) { _ in }
        #expect(Set(tasks.map(\.id) + [request.id]).count == 6)
        #expect(Set(tasks).count == 5)
        await agent.shutdown()
    }

    private final class Delegate: RequestDelegate {
        let results = Mutex<[String]>([])
        let (calls, call) = AsyncStream<Void>.makeStream()

        func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value) {
            results.withLock { $0.append("\(G.self) finished \(value) \(task.state)") }
            call.yield()
        }

        func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError) {
            results.withLock { $0.append("\(G.self) \(error.code) \(task.state)") }
            call.yield()
        }
    }

    @Test func delegatesGetTheirResultAndAreHeldWeakly() async {
        let stub = StubTransport(["/bad": .response(status: 500), "/held": .hold])
        let agent = NetworkAgent.with(stub)
        var delegate: Delegate? = Delegate()
        var calls = delegate?.calls.makeAsyncIterator()
        if let delegate {
            agent.start(BatchRequest([Echo("a")]), delegate: delegate)
            await calls?.next()
            agent.start(ChainRequest(Echo("bad")), delegate: delegate)
            await calls?.next()
            #expect(
                delegate.results.withLock { $0 } == [
                    "BatchRequest<Array<String>> finished [\"a\"] finished",
                    "ChainRequest<String> invalidStatusCode(500) failed",
                ])
            agent.start(ChainRequest(Echo("held")), delegate: delegate)
        }
        await stub.waitForHeld(1)
        weak let gone = delegate
        calls = nil
        delegate = nil
        // The last caller may still be returning.
        #expect(await eventually { gone == nil })
        stub.releaseAll()
        await agent.shutdown()
    }

    @Test func theSameGroupCanBeStartedAtOnceAndInTurn() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let group = ChainRequest(Echo("a")).then { BatchRequest(Echo($0), Echo($0)) }.map { "\($0)\($1)" }
        async let first = agent.send(group)
        async let second = agent.send(group)
        let outcome = KeptResult<String>()
        agent.start(group, completion: outcome.take)
        #expect(try await [first, second] == ["aa", "aa"])
        #expect(try await outcome.result.get() == "aa")
        #expect(try await agent.send(group) == "aa")
        #expect(stub.requests.count == 12)
    }

    @Test func aGroupCanBeStartedInsideACallback() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let outcome = KeptResult<[String]>()
        agent.start(ChainRequest(Echo("a"))) { result in
            agent.start(BatchRequest([Echo("b")]), completion: outcome.take)
        }
        #expect(try await outcome.result.get() == ["b"])
        let inner = try await agent.send(
            ChainRequest(Echo("a")).map { _ in try await agent.send(batch: [Echo("c")]) })
        #expect(inner == ["c"])
        await agent.shutdown()
        let late = KeptResult<[String]>()
        agent.start(BatchRequest([Echo("b")]), completion: late.take)
        #expect(await late.error?.code == .shutdown)
    }

    @Test func observersOfGroupsAndOfMembersAreTold() async throws {
        let book = Logbook()
        let agent = NetworkAgent.with(StubTransport(["/bad": .response(status: 500)]))
        var member = Echo("m")
        member.observers = [LoggingObserver("member", book)]
        let batch = BatchRequest([member]).observed(by: LoggingObserver("batch", book))
        try await agent.send(ChainRequest(batch).observed(by: LoggingObserver("chain", book)))
        #expect(
            book.events == [
                "chain willStart", "batch willStart", "member willStart", "member metrics", "member willStop finished",
                "member didStop finished", "batch metrics", "batch willStop finished", "batch didStop finished",
                "chain metrics", "chain willStop finished", "chain didStop finished",
            ])
        let failed = Logbook()
        _ = await fault { () throws(RequestError) in
            try await agent.send(ChainRequest(Echo("bad")).observed(by: LoggingObserver("chain", failed)))
        }
        #expect(failed.events == ["chain willStart", "chain metrics", "chain willStop failed", "chain didStop failed"])
    }

    @Test func callbacksComeBetweenWillStopAndDidStop() async {
        let book = Logbook()
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        agent.start(BatchRequest([Echo("a")]).observed(by: LoggingObserver("batch", book))) { _ in book.note("closure")
        }
        await agent.shutdown()
        #expect(
            book.events == [
                "batch willStart", "batch metrics", "batch willStop finished", "closure", "batch didStop finished",
            ])
    }

    @Test func theAgentsObserversKnowWhoBelongsToWhom() async throws {
        let seen = OutcomeObserver()
        let agent = NetworkAgent.with(StubTransport(always: .response())) { $0.observers = [seen] }
        try await agent.send(
            ChainRequest(Echo("a")).then { _ in BatchRequest([Echo("b")]).tagged("inner") }.tagged("outer")
                .userInfo(["k": 1]))
        let runs = seen.started
        #expect(runs.map(\.kind) == [.chain, .request, .batch, .request])
        #expect(runs.map(\.tag) == ["outer", nil, "inner", nil])
        #expect(runs.map(\.group) == [nil, runs[0].id, runs[0].id, runs[2].id])
        #expect(runs[0].method == nil && runs[0].url.isEmpty)
        #expect(runs[0].userInfo["k"] as? Int == 1)
        #expect(seen.outcomes.count == 4)
    }

    @Test func prioritiesAreInheritedUnlessSaidOtherwise() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        var low = Echo("low")
        low.priority = .low
        try await agent.send(
            ChainRequest(Echo("1"))
                .then { [low] _ in
                    BatchRequest(low, Echo("high"), BatchRequest([Echo("inner")]).priority(.low), atMost: 1)
                }
                .priority(.high))
        try await agent.send(Echo("alone"))
        #expect(
            stub.requests.map { "\($0.url) \($0.priority)" } == [
                "http://h/1 high", "http://h/low low", "http://h/high high", "http://h/inner low",
                "http://h/alone normal",
            ])
    }

    @Test func aPriorityCanBeChangedWhileItRuns() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        var own = Echo("own")
        own.priority = .low
        let task = agent.start(
            ChainRequest(BatchRequest(Echo("a"), own)).then { _, _ in Echo("b") }
        ) { _ in }
        await stub.waitForHeld(2)
        task.setPriority(.high)
        #expect(stub.held.map(\.priority) == [.high, .low])
        stub.releaseAll()
        await stub.waitForRequests(3)
        #expect(stub.requests[2].priority == .high)
        stub.releaseAll()
        await agent.shutdown()
    }

    @Test func aGroupWithAPriorityOfItsOwnKeepsIt() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let task = agent.start(
            BatchRequest(
                BatchRequest([Echo("a")]).priority(.low), BatchRequest([Echo("b")]), ChainRequest(Echo("c")))
        ) { _ in }
        await stub.waitForHeld(3)
        task.setPriority(.high)
        // A run that is being submitted gets it a moment later.
        #expect(
            await eventually {
                stub.held.sorted { $0.url < $1.url }.map(\.priority) == [.low, .high, .high]
            })
        stub.releaseAll()
        await agent.shutdown()
    }

    /// Changes the priority when a request is logged: its transfer exists then, but has not been submitted.
    private final class Changer: LogSink {
        let task = Mutex<RequestTask<String>?>(nil)
        var minimumLevel: LogLevel { .trace }

        func log(_ entry: LogEntry) {
            if entry.level == .trace { task.withLock { $0 }?.setPriority(.high) }
        }
    }

    @Test func aPriorityThatIsChangedBetweenTwoStepsOfAStartHolds() async {
        let stub = StubTransport(always: .hold)
        let changer = Changer()
        let agent = NetworkAgent.with(stub) { $0.logSink = changer }
        let (gate, open) = AsyncStream<Void>.makeStream()
        let task = agent.start(
            ChainRequest(value: "a").onValue { _ in for await _ in gate { break } }.then { Echo($0) }
        ) { _ in }
        changer.task.withLock { $0 = task }
        open.yield()
        #expect(await eventually { stub.events.contains(.priorityChanged(1, .high)) })
        #expect(stub.requests.map(\.priority) == [.normal])
        stub.releaseAll()
        await agent.shutdown()
        // The task knows the agent, which knows its log.
        changer.task.withLock { $0 = nil }
    }

    @Test func itIsKeptByTheAgentAndThenLetGo() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        weak let gone = token
        let outcome = KeptResult<[String]>()
        if let token {
            agent.start(
                ChainRequest(Echo("a")).map { [token] value in
                    _ = token
                    return [value]
                }
            ) { [token] result in
                _ = token
                outcome.take(result)
            }
        }
        token = nil
        await stub.waitForHeld(1)
        #expect(gone != nil)
        #expect(agent.core.state.withLock { $0.groups.count } == 1)
        stub.releaseAll()
        #expect(await outcome.error == nil)
        await agent.shutdown()
        #expect(agent.core.state.withLock { $0.groups.isEmpty })
        await end.finished()
    }

    private struct Holder: RequestObserver { let token: Token? }

    @Test func aBatchIsLetGoWithItsMembers() async {
        let stub = StubTransport(["/moved": .redirect(to: "/there"), "/there": .hold, "/plain": .hold])
        let agent = NetworkAgent.with(stub)
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        weak let gone = token
        let outcome = KeptResult<[String]>()
        var members = ["plain", "moved"].map { Echo($0) }
        for index in members.indices { members[index].observers = [Holder(token: token)] }
        agent.start(BatchRequest(members), completion: outcome.take)
        (token, members) = (nil, [])
        await stub.waitForHeld(2)
        #expect(gone != nil)
        stub.releaseAll()
        #expect(await outcome.error == nil)
        await agent.shutdown()
        #expect(agent.core.state.withLock { $0.groups.isEmpty && $0.controls.isEmpty && $0.table.count == 0 })
        await end.finished()
    }

    @Test func anAgentThatIsLetGoStillEndsItsGroups() async throws {
        let stub = StubTransport(always: .hold)
        let outcome = KeptResult<String>()
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        var agent: NetworkAgent? = NetworkAgent.with(stub) { $0.observers = [Holder(token: token)] }
        token = nil
        agent?.start(ChainRequest(Echo("a")).then { Echo($0 + "b") }, completion: outcome.take)
        weak let core = agent?.core
        agent = nil
        await stub.waitForHeld(1)
        stub.releaseAll()
        await stub.waitForRequests(2)
        await stub.waitForHeld(1)
        stub.releaseAll()
        #expect(try await outcome.result.get() == "ab")
        await end.finished()
        #expect(core == nil)
    }

    @Test func aTypeOfOnesOwnStandsForAGroup() async throws {
        struct Pair: RequestGroup {
            let name: String
            var groupMember: GroupMember<String> {
                ChainRequest(Echo(name)).then { Echo($0 + $0) }.tagged("pair").groupMember
            }
        }
        struct One: RequestGroup {
            var groupMember: GroupMember<String> { Echo("one").groupMember }
        }
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        #expect(try await agent.send(Pair(name: "x")) == "xx")
        #expect(try await agent.send(batch: Pair(name: "y"), One()) == ("yy", "one"))
        #expect(try await agent.send(One()) == "one")
        // Its only member has ended, also if it has failed.
        for stub in [StubTransport(always: .response()), StubTransport(always: .response(status: 500))] {
            let outcome = KeptResult<String>()
            let task = NetworkAgent.with(stub).start(One(), completion: outcome.take)
            _ = await outcome.result
            #expect(task.progress == GroupProgress(finished: 1, total: 1))
        }
    }

    @Test func metricsAreThereBeforeAndAfterTheEnd() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let outcome = Outcome<String>()
        let request = agent.start(Echo("a"), completion: outcome.take)
        let group = agent.start(ChainRequest(Echo("b"))) { _ in }
        await stub.waitForHeld(2)
        let before = request.metrics
        #expect(before.total > .zero && before.queue <= before.total && before.attempts == 0)
        #expect(group.metrics.total > .zero)
        stub.releaseAll()
        _ = await outcome.result
        await agent.shutdown()
        #expect(!request.isFromCache)
        #expect(request.metrics == request.metrics && group.metrics == group.metrics, "they stand still now")
        #expect(request.progress == nil)
    }

    @Test func metricsOfARunAreThoseOfItsReply() async throws {
        let server = try LoopbackServer()
        try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
            let outcome = Outcome<Response>()
            let task = agent.start(Get("/hello"), completion: outcome.take)
            let reply = try await outcome.result.get()
            await agent.shutdown()
            #expect(task.state.isEnd)
            #expect(task.metrics.total == reply.metrics.total)
            #expect(task.metrics.bytesReceived == reply.metrics.bytesReceived && task.metrics.bytesReceived > 0)
            #expect(task.metrics.peer?.address == "127.0.0.1")
        }
    }
}

import FaultTable
import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

@Suite(.timeLimit(.minutes(1)), .faultTable) struct ChainTests {
    @Test("A, then B and C, then D")
    func aThenBAndCThenD() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let value = try await agent.send(
            ChainRequest(Echo("A"))
                .then { BatchRequest(Echo($0 + "B"), Echo($0 + "C")) }
                .then { b, c in Echo(b + c + "D") })
        #expect(value == "ABACD")
        #expect(stub.paths.first == "/A" && stub.paths.last == "/ABACD" && stub.requests.count == 4)
    }

    @Test func eachStepStartsAfterTheCallbacksBefore() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let seen = Mutex<[String]>([])
        @Sendable func note(_ word: String) { seen.withLock { $0.append("\(word) \(stub.requests.count)") } }
        let chain = ChainRequest(Echo("A"))
            .onValue { note($0) }
            .map { value in
                note("map")
                return value + "!"
            }
            .onValue { note($0) }
            .then { value in
                note("then")
                return Echo("B")
            }
            .onValue { note($0) }
        #expect(try await agent.send(chain) == "B")
        #expect(seen.withLock { $0 } == ["A 1", "map 1", "A! 1", "then 1", "B 2"])
    }

    @Test func stepsAreAddedWhileItRuns() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let told = Mutex<[GroupProgress]>([])
        let value = try await agent.send(
            ChainRequest(Count(number: 0))
                .then { _ in ChainRequest(Count(number: 1)).then { _ in Count(number: 2) } }
                .then { Count(number: $0 + 1) }
        ) { progress in told.withLock { $0.append(progress) } }
        #expect(value == 3)
        #expect(stub.paths == ["/0", "/1", "/2", "/3"])
        #expect(told.withLock { $0.last } == GroupProgress(finished: 4, total: 4))
    }

    @Test func aStepThatFailsHasEnded() async throws {
        let agent = NetworkAgent.with(StubTransport(["/1": .response(status: 500)]))
        let told = Mutex<[GroupProgress]>([])
        let outcome = KeptResult<Int>()
        let task = agent.start(
            ChainRequest(Count(number: 0)).then { Count(number: $0 + 1) }.then { Count(number: $0 + 1) },
            progress: { progress in told.withLock { $0.append(progress) } }, completion: outcome.take)
        #expect(await outcome.error?.failedIndex == 1)
        #expect(task.progress == GroupProgress(finished: 2, total: 3))
        #expect(told.withLock { $0.last } == GroupProgress(finished: 2, total: 3))
        await agent.shutdown()
    }

    @Test func pagesUntilThereAreNoMore() async throws {
        @Sendable func pages(from number: Int, _ soFar: [Int]) -> ChainRequest<[Int]> {
            ChainRequest(Count(number: number)).map { soFar + [$0] }.then { all in
                number < 2000 ? pages(from: number + 1, all) : ChainRequest(value: all)
            }
        }
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        #expect(try await agent.send(pages(from: 0, [])) == Array(0...2000))
    }

    @Test func aStepMayBeNothing() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        func chain(_ isNew: Bool) -> ChainRequest<String?> {
            ChainRequest(Echo("A")).then { isNew ? Echo($0 + "B") : nil }
        }
        #expect(try await agent.send(chain(true)) == "AB")
        #expect(try await agent.send(chain(false)) == nil)
        #expect(stub.requests.count == 3)
        #expect(try await agent.send(ChainRequest(value: 5)) == 5)
        #expect(try await agent.send(ChainRequest(value: 5).map { $0 * 2 }.then { Count(number: $0) }) == 10)
    }

    @Test("R109: a failing step is named in the error, and later ones are never sent", arguments: [nil, "third"])
    func failingStep(name: String?) async throws {
        let stub = StubTransport(["/3": .response(status: 503)])
        let agent = NetworkAgent.with(stub)
        let error = try #require(
            await fault { () throws(RequestError) in
                try await agent.send(
                    ChainRequest(Count(number: 1))
                        .then { Count(number: $0 + 1) }
                        .then(name) { Count(number: $0 + 1) }
                        .then { Count(number: $0 + 1) }
                        .then { Count(number: $0 + 1) })
            })
        #expect(error.code == .invalidStatusCode(503))
        #expect(error.failedIndex == 2)
        #expect(error.failedStep == name ?? "Count")
        #expect(error.description.contains("step 2 (\(name ?? "Count"))"))
        #expect(error.response?.status == 503)
        #expect(stub.paths == ["/1", "/2", "/3"])
    }

    @Test("R109: a step that is cancelled ends the chain")
    func cancelledStep() async throws {
        let stub = StubTransport { $0.url.hasSuffix("/3") ? .hold : .response() }
        let agent = NetworkAgent.with(stub)
        var third = Echo("3")
        third.tag = "third"
        let outcome = KeptResult<String>()
        let task = agent.start(
            ChainRequest(Echo("1")).then { _ in Echo("2") }.then { [third] _ in third }.then { _ in Echo("4") }
                .then { _ in Echo("5") }, completion: outcome.take)
        await stub.waitForHeld(1)
        agent.cancelAll(tagged: "third")
        let error = try #require(await outcome.error)
        #expect(error.code == .cancelled)
        #expect(error.failedIndex == 2)
        await agent.shutdown()
        #expect(stub.paths == ["/1", "/2", "/3"])
        #expect(outcome.count == 1)
        #expect(task.state == .cancelled)
    }

    @Test func whatClosuresThrowIsTheUsersError() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let chains: [(ChainRequest<String>, Int, Int)] = [
            (ChainRequest(Echo("A")).then { _ -> Echo in throw Oops() }, 1, 1),
            (ChainRequest(Echo("A")).map { _ -> String in throw Oops() }.then { Echo($0) }, 0, 1),
            (ChainRequest(Echo("A")).then { Echo($0) }.onValue { _ in throw Oops() }.then { Echo($0) }, 1, 2),
            (ChainRequest(value: "").onValue { _ in throw Oops() }.then { Echo($0) }, 0, 0),
            (
                ChainRequest(Echo("A")).then { _ in
                    ChainRequest(value: "").map { _ -> String in throw Oops() }.then { Echo($0) }
                }, 1, 1
            ),
        ]
        for (chain, step, sent) in chains {
            let before = stub.requests.count
            let error = await fault { () throws(RequestError) in try await agent.send(chain) }
            #expect(error?.code == .applicationError)
            #expect(error?.cause is Oops)
            #expect(error?.failedIndex == step)
            #expect(stub.requests.count - before == sent)
        }
        let own = RequestError(.decoding, message: "mine")
        let error = await fault { () throws(RequestError) in
            try await agent.send(ChainRequest(Echo("A")).onValue { _ in throw own })
        }
        #expect(error?.code == .decoding && error?.message == "mine" && error?.failedIndex == 0)
        let cancelled = await fault { () throws(RequestError) in
            try await agent.send(ChainRequest(Echo("A")).onValue { _ in throw CancellationError() })
        }
        #expect(cancelled?.code == .cancelled)
    }

    @Test func indexAndNameAreThoseOfOneStep() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let value = ChainRequest(value: "x").map { $0 + "y" }
        let chains: [(ChainRequest<String>, Int, String)] = [
            (ChainRequest(Echo("A")).then("inner") { _ in value }.map { _ -> String in throw Oops() }, 0, "Echo"),
            (ChainRequest(value, name: "first").map { _ -> String in throw Oops() }, 0, "first"),
            (
                ChainRequest(Echo("A")).then("inner") { _ in value.then("deep") { Echo($0) } }
                    .map { _ -> String in throw Oops() }, 1, "deep"
            ),
            (
                ChainRequest(Echo("A")).then("inner") { _ in ChainRequest(value, name: "deep") }
                    .then("last") { _ in value }.map { _ -> String in throw Oops() }, 0, "Echo"
            ),
        ]
        for (chain, index, name) in chains {
            let error = await fault { () throws(RequestError) in try await agent.send(chain) }
            #expect(error?.failedIndex == index && error?.failedStep == name)
        }
    }

    @Test func placesSpeakOfGroupsInsideOneAnother() async throws {
        let agent = NetworkAgent.with(StubTransport(["/bad": .response(status: 500)]))
        let inner = ChainRequest(Echo("x")).then("worse") { _ in Echo("bad") }
        let error = try #require(
            await fault { () throws(RequestError) in
                try await agent.send(ChainRequest(Echo("a")).then("both") { _ in BatchRequest(Echo("b"), inner) })
            })
        #expect(
            error.groupPath == [
                GroupPlace(kind: .chain, index: 1, name: "both"), GroupPlace(kind: .batch, index: 1),
                GroupPlace(kind: .chain, index: 1, name: "worse"),
            ])
        #expect(error.failedStep == "both")
    }

    private final class Handle: Sendable {
        let task = Mutex<RequestTask<String>?>(nil)
        private let gone: Logbook?

        init(_ gone: Logbook? = nil) { self.gone = gone }
        deinit { gone?.note("gone") }
    }

    @Test(arguments: 0..<3) func aCancelFromInsideACallbackIsTheEnd(_ place: Int) async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let handle = Handle()
        let (started, begin) = AsyncStream<Void>.makeStream()
        @Sendable func cancel(at here: Int) async {
            for await _ in started { break }
            if here == place { handle.task.withLock { $0 }?.cancel() }
            begin.finish()
        }
        let outcome = KeptResult<String>()
        let chain = ChainRequest(Echo("A"))
            .onValue { _ in await cancel(at: 0) }
            .map { value in
                await cancel(at: 1)
                return value
            }
            .then { _ in
                await cancel(at: 2)
                return Echo("B")
            }
        let run = agent.start(chain, completion: outcome.take)
        handle.task.withLock { $0 = run }
        begin.yield()
        #expect(await outcome.error?.code == .cancelled)
        await agent.shutdown()
        #expect(stub.paths == ["/A"])
        #expect(outcome.count == 1)
        #expect(run.state == .cancelled)
    }

    @Test func whatAChainCapturedGoesWithItsResult() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let gone = Logbook()
        let outcome = KeptResult<String>()
        func start() {
            let handle = Handle(gone)
            let chain = ChainRequest(Echo("A")).map { value in
                _ = handle
                return value
            }
            // It holds the run, which holds the closure that holds it.
            handle.task.withLock { $0 = agent.start(chain, completion: outcome.take) }
        }
        start()
        #expect(await outcome.error == nil)
        await gone.waitForEntries(1)
        await agent.shutdown()
    }

    @Test func aLongChainNeedsNoStack() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        var chain = ChainRequest(value: 0)
        for _ in 0..<10_000 { chain = chain.map { $0 + 1 } }
        #expect(try await agent.send(chain) == 10_000)
    }
}

import Dispatch
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The order of one run, and where each step of it happens.
@Suite struct RunOrderTests {
    /// How a run is started.
    enum Way: CaseIterable, Sendable { case closure, delegate, await }

    /// How it ends.
    enum Case: CaseIterable, Sendable { case success, cached, status, transport, value, build }

    private let book = Logbook()
    private let queue = DispatchQueue(label: "test.callbacks")

    private func agent(_ stub: StubTransport, interceptors: [any RequestInterceptor] = []) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.observers = [LoggingObserver("common", book)]
        configuration.callbackQueue = queue
        configuration.interceptors = interceptors
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        book.know(processing: agent.core.processingQueue, callbacks: queue)
        return agent
    }

    private func request(_ path: String = "/x") -> LoggedRequest {
        var request = LoggedRequest(book, path: path)
        request.observers = [LoggingObserver("own", book)]
        return request
    }

    private func run(_ request: LoggedRequest, _ way: Way, on agent: NetworkAgent) async {
        switch way {
        case .closure:
            book.calling {
                _ = agent.start(request) { [book] result in
                    switch result {
                    case .success: book.note("closure finished")
                    case .failure(let error): book.note("closure \(error.code.name)")
                    }
                }
            }
        case .delegate:
            let delegate = LoggingDelegate(book)
            book.calling { _ = agent.start(request, delegate: delegate) }
            await agent.shutdown(grace: .seconds(3600))
            withExtendedLifetime(delegate) {}
        case .await:
            await Logbook.$isCaller.withValue(true) { [book] in
                do throws(RequestError) {
                    try await agent.send(request)
                    book.note("await finished")
                } catch {
                    book.note("await \(error.code.name)")
                }
            }
        }
        await agent.shutdown(grace: .seconds(3600))
    }

    private struct FromCache: RequestInterceptor {
        func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
            InterceptedResponse(headers: ["Age": "1"], body: Data("{}".utf8), isFromCache: true)
        }
    }

    private func play(_ what: Case, by way: Way) async -> [Logbook.Entry] {
        var request = request()
        var interceptors: [any RequestInterceptor] = []
        var stub = StubTransport(always: .response(body: "{}"))
        switch what {
        case .success: break
        case .cached:
            interceptors = [FromCache()]
            stub = StubTransport(always: .failure(.connect(.refused)))
        case .status: stub = StubTransport(always: .response(status: 500))
        case .transport: stub = StubTransport(always: .failure(.connectionReset))
        case .value: request.fault = Oops()
        case .build: request.path = "http:// h"
        }
        await run(request, way, on: agent(stub, interceptors: interceptors))
        return book.entries
    }

    /// The expected steps.
    private func script(_ what: Case, by way: Way) -> [Logbook.Entry] {
        let (word, code): (String, String?) =
            switch what {
            case .success: ("finished", nil)
            case .cached: ("cached", nil)
            case .status: ("failed", "invalidStatusCode")
            case .transport: ("failed", "connectionReset")
            case .value: ("failed", "applicationError")
            case .build: ("failed", "invalidURL")
            }
        let isAwaited = way == .await
        let (caller, processing, callbacks): (Logbook.Place, Logbook.Place, Logbook.Place) =
            isAwaited ? (.task, .task, .task) : (.caller, .processing, .callbacks)
        var script = [
            Logbook.Entry(event: "common willStart", place: caller), .init(event: "own willStart", place: caller),
        ]
        if code == nil || what == .value { script.append(.init(event: "value", place: processing)) }
        script.append(
            .init(event: code.map { "failurePreprocessor \($0)" } ?? "completionPreprocessor", place: processing))
        for event in ["common metrics", "own metrics", "common willStop \(word)", "own willStop \(word)"] {
            script.append(.init(event: event, place: callbacks))
        }
        script.append(.init(event: code.map { "willDeliver \($0)" } ?? "willDeliver", place: callbacks))
        switch way {
        case .closure: script.append(.init(event: "closure \(code ?? "finished")", place: callbacks))
        case .delegate:
            let state = code == nil ? "finished" : "failed"
            script.append(.init(event: "delegate \(code ?? "finished"), \(state)", place: callbacks))
        case .await: break
        }
        for event in ["common didStop \(word)", "own didStop \(word)"] {
            script.append(.init(event: event, place: callbacks))
        }
        if isAwaited { script.append(.init(event: "await \(code ?? "finished")", place: .task)) }
        return script
    }

    @Test func aRefusedRunThatIsCancelledFailsOnce() async {
        let book = Logbook()
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        agent.core.processingQueue.suspend()
        let outcome = Outcome<Response>()
        let task = agent.start(LoggedRequest(book, path: "http:// h"), completion: outcome.take)
        task.cancel()
        agent.core.processingQueue.resume()
        #expect(await outcome.code == .cancelled)
        await agent.shutdown()
        #expect(task.state == .cancelled && outcome.count == 1)
        #expect(book.events == ["failurePreprocessor cancelled", "willDeliver cancelled"])
    }

    @Test(arguments: Case.allCases, Way.allCases)
    func everyStepComesInItsOrderAndPlace(_ what: Case, _ way: Way) async {
        #expect(await play(what, by: way) == script(what, by: way))
    }

    @Test(arguments: [Way.closure, .delegate])
    func aCancelledRunFailsByTheSameSteps(_ way: Way) async {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        let delegate = LoggingDelegate(book)
        let task = book.calling {
            switch way {
            case .closure: agent.start(request()) { [book] _ in book.note("closure cancelled") }
            default: agent.start(request(), delegate: delegate)
            }
        }
        await stub.waitForHeld(1)
        task.cancel()
        await agent.shutdown(grace: .seconds(3600))
        #expect(book.entries == cancelled(way == .closure ? "closure cancelled" : "delegate cancelled, cancelled"))
    }

    private func cancelled(_ callback: String) -> [Logbook.Entry] {
        let first = [("common willStart", Logbook.Place.caller), ("own willStart", .caller)]
        let last: [(String, Logbook.Place)] = [
            ("failurePreprocessor cancelled", .processing), ("common metrics", .callbacks),
            ("own metrics", .callbacks), ("common willStop cancelled", .callbacks),
            ("own willStop cancelled", .callbacks), ("willDeliver cancelled", .callbacks), (callback, .callbacks),
            ("common didStop cancelled", .callbacks), ("own didStop cancelled", .callbacks),
        ]
        return (first + last).map { Logbook.Entry(event: $0.0, place: $0.1) }
    }

    @Test func aRunCancelledWhileItWaitsFailsByTheSameSteps() async {
        let stub = StubTransport(always: .response())
        stub.suspend()
        let agent = agent(stub)
        let task = book.calling { agent.start(request()) { [book] _ in book.note("closure cancelled") } }
        #expect(task.state == .waiting)
        task.cancel()
        stub.resume()
        await agent.shutdown(grace: .seconds(3600))
        #expect(book.entries == cancelled("closure cancelled"))
    }

    /// Its result was already waiting for the callback queue: code that had seen its success sees it, and then it fails
    /// like any other.
    @Test func aRunCancelledWhileItFinishesFailsOnTheSameQueues() async {
        let stub = StubTransport(always: .response())
        let agent = agent(stub)
        queue.suspend()
        let task = book.calling { agent.start(request()) { [book] _ in book.note("closure cancelled") } }
        await book.waitForEntries(4)
        #expect(book.events.suffix(2) == ["value", "completionPreprocessor"])
        #expect(task.state == .finishing)
        task.cancel()
        queue.resume()
        await agent.shutdown(grace: .seconds(3600))
        var expected = cancelled("closure cancelled")
        expected.insert(.init(event: "value", place: .processing), at: 2)
        expected.insert(.init(event: "completionPreprocessor", place: .processing), at: 3)
        #expect(book.entries == expected)
        #expect(task.state == .cancelled)
    }

    @Test func anAwaitedRunCancelledBeforeItsStartFailsByTheSameSteps() async {
        let stub = StubTransport(always: .response())
        let agent = agent(stub)
        let request = request()
        let gate = AsyncStream<Void>.makeStream()
        let task = Logbook.$isCaller.withValue(true) {
            Task {
                for await _ in gate.stream { break }
                return await code { () throws(RequestError) in try await agent.send(request) }
            }
        }
        task.cancel()
        gate.continuation.finish()
        #expect(await task.value == .cancelled)
        #expect(
            book.events == [
                "common willStart", "own willStart", "failurePreprocessor cancelled", "common metrics", "own metrics",
                "common willStop cancelled", "own willStop cancelled", "willDeliver cancelled",
                "common didStop cancelled", "own didStop cancelled",
            ])
        #expect(book.entries.allSatisfy { $0.place == .task })
        #expect(stub.requests.isEmpty)
    }

    @Test func anAwaitedRunCancelledAtWorkFailsByTheSameSteps() async {
        let stub = StubTransport(always: .hold)
        let agent = agent(stub)
        let request = request()
        let task = Task { await code { () throws(RequestError) in try await agent.send(request) } }
        await stub.waitForHeld(1)
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(
            book.events == [
                "common willStart", "own willStart", "failurePreprocessor cancelled", "common metrics", "own metrics",
                "common willStop cancelled", "own willStop cancelled", "willDeliver cancelled",
                "common didStop cancelled", "own didStop cancelled",
            ])
    }

    /// Its response was there: code that has processed it is not undone.
    @Test func anAwaitedRunCancelledWhileItFinishesKeepsItsReply() async {
        struct Cancelling: Request {
            typealias Value = Bool
            var path: String { "/x" }
            func value(from response: Response) throws -> Bool {
                withUnsafeCurrentTask { $0?.cancel() }
                return Task.isCancelled
            }
        }
        let agent = agent(StubTransport(always: .response()))
        let task = Task { try await agent.send(Cancelling()).value }
        #expect((try? await task.value) == true)
        #expect(book.events.last == "common didStop finished")
    }

    @Test func awaitingOnTheMainActorKeepsTheWorkOffIt() async {
        let agent = agent(StubTransport(always: .response()))
        let request = request()
        await onMain { _ = try? await agent.send(request) }
        #expect(book.places(of: "value") == [.elsewhere])
        #expect(book.places(of: "willDeliver") == [.elsewhere])
        #expect(book.places(of: "own didStop finished") == [.elsewhere])
    }

    /// The promises about the caller's thread hold for every way to start a run; the rest happens elsewhere.
    @Test func everyRunBeginsInTheCallersThread() async throws {
        let folder = try Folder()
        let agent = agent(StubTransport(always: .response(body: "{}")))
        let request = request()
        agent.urlFilters = [Noting(book: book)]
        let file = folder.file("f")
        let ways: [@Sendable @MainActor () async throws -> Void] = [
            { _ = try await agent.send(request, uploadProgress: { _ in }) },
            { _ = try await agent.stream(request).body.collect(upTo: 10) },
            { _ = try await agent.download(request, to: .file(file)) },
            { _ = try await agent.send(BatchRequest([request])) },
            { _ = try await agent.send(BatchRequest([request])) { _ in } },
        ]
        for (index, way) in ways.enumerated() {
            let count = book.entries.count
            try await way()
            let entries = Array(book.entries[count...])
            // Members are built by their group.
            if index < 3 { #expect(entries.first == .init(event: "filter", place: .main), "\(index)") }
            #expect(entries.first { $0.event == "common willStart" }?.place == .main, "\(index)")
            let last = try #require(entries.last)
            #expect(last.event == "own didStop finished" || index >= 3, "\(index)")
            #expect(last.event.hasSuffix("didStop finished") && last.place != .main, "\(index)")
        }
    }

    private struct Noting: URLFilter {
        let book: Logbook
        func filter(_ path: String, of request: any Request) -> String {
            book.note("filter")
            return path
        }
    }

    @MainActor private func onMain(_ body: @MainActor () async -> Void) async { await body() }

    @Test func nothingRunsOnTheMainQueueUnlessItIsAskedFor() async {
        let agent = agent(StubTransport(always: .response()))
        agent.start(request()) { [book] _ in book.note("closure") }
        await agent.shutdown(grace: .seconds(3600))
        #expect(!book.entries.contains { $0.place == .main })
        let other = self.agent(StubTransport(always: .response()))
        let outcome = Outcome<Response>()
        other.start(request(), on: .main) { [book] in
            book.note("asked for")
            outcome.take($0)
        }
        _ = await outcome.result
        #expect(book.places(of: "asked for") == [.main])
    }
}

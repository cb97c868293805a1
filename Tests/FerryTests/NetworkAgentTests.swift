import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

@Suite struct NetworkAgentTests {
    private func agent(_ answer: StubTransport.Response) -> NetworkAgent {
        NetworkAgent(configuration: .test, stub: StubTransport(always: answer))
    }

    // Types that define nothing but their value.

    private struct AsText: Request {
        typealias Value = String
        var path: String { "/text" }
    }

    private struct AsData: Request {
        typealias Value = Data
        var path: String { "/data" }
    }

    private struct AsBytes: Request {
        typealias Value = [UInt8]
        var path: String { "/bytes" }
    }

    private struct Nothing: Request {
        typealias Value = Void
        var path: String { "/nothing" }
    }

    @Test func valuesOfEveryKindAreMade() async throws {
        let agent = agent(.response(headers: ["X-A": "1", "x-a": "2"], body: #"{"nick":"kim","level":3}"#))
        let user = try await agent.send(UserInfo(id: 7))
        #expect(user.value == User(nick: "kim", level: 3))
        #expect(user.status == 200)
        #expect(user.headers["x-a"] == "1, 2")
        #expect(user.headers.values(of: "X-A") == ["1", "2"])
        #expect(user.url == "http://h/users/7")
        #expect(!user.isFromCache)
        let text = #"{"nick":"kim","level":3}"#
        #expect(try await agent.send(Get()).value.text == text)
        #expect(try await agent.send(AsText()).value == text)
        #expect(try await agent.send(AsData()).value == Data(text.utf8))
        #expect(try await agent.send(AsBytes()).value == Array(text.utf8))
        try await agent.send(Nothing()).value
        #expect(try await agent.get("/x", as: [String: JSONScalar].self)["level"] == .number(3))
    }

    enum JSONScalar: Decodable, Equatable {
        case number(Int), text(String)
        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            self =
                if let number = try? container.decode(Int.self) { .number(number) } else {
                    .text(try container.decode(String.self))
                }
        }
    }

    @Test func bodiesOutliveTheirResponse() async throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        let agent = agent(.response(body: bytes))
        var body = try await agent.send(AsData()).value
        #expect(Array(body) == bytes)
        body[0] = 9
        body.append(1)
        #expect(body.count == 100_001 && body[0] == 9 && body[1] == 1)
        #expect(try await agent.send(Get()).value.withBytes { Array($0) } == bytes)
        #expect(try await agent.send(Get()).bodyLength == 100_000)
    }

    @Test func statusIsCheckedBeforeTheValue() async throws {
        let body = String(repeating: "x", count: 5000)
        let agent = agent(.response(status: 404, headers: ["X": "1"], body: body))
        do throws(RequestError) {
            try await agent.send(UserInfo(id: 1))
            Issue.record("404 was accepted")
        } catch {
            #expect(error.code == .invalidStatusCode(404))
            #expect(error.phase == .processing)
            #expect(error.mayHaveBeenProcessed)
            #expect(error.response?.status == 404 && error.status == 404)
            #expect(error.response?.headers == ["X": "1"])
            #expect(error.response?.body.count == 5000)
        }
        #expect(try await agent.send(Full(statusValidation: .any)).status == 404)
        #expect(try await agent.send(Full(statusValidation: .codes([404]))).status == 404)
        #expect(try await agent.send(Full(statusValidation: .custom { $0 == 404 })).status == 404)
        var configuration = NetworkConfiguration.test
        configuration.statusValidation = .range(400...499)
        let lenient = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response(status: 404)))
        #expect(try await lenient.send(Get()).status == 404)
        #expect(
            await code { () throws(RequestError) in try await lenient.send(Full(statusValidation: .successful)) }
                == .invalidStatusCode(404))
    }

    @Test func faultsOfTheValueHaveTheirCode() async {
        let agent = agent(.response(body: #"{"nick":"canary","level":"canary"}"#))
        do throws(RequestError) {
            try await agent.send(UserInfo(id: 1))
        } catch {
            #expect(error.code == .decoding)
            #expect(error.message == "$.level: expected Int")
            #expect(!error.description.contains("canary"))
            #expect(error.cause is DecodingError)
        }
        do throws(RequestError) { try await agent.send(Failing()) } catch {
            #expect(error.code == .applicationError)
            #expect(error.cause is Oops)
        }
    }

    @Test func faultsOfTheNetworkComeThrough() async {
        for expected: RequestError.Code in [
            .connect(.refused), .timeout(.responseHead), .tls(.expired), .dns(.notFound),
        ] {
            let agent = agent(.failure(expected))
            #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == expected)
        }
        let unnamed = agent(.failure(.incompleteBody))
        #expect(
            await code { () throws(RequestError) in try await unnamed.send(Get()) }
                == .incompleteBody(expected: nil, got: 0))
    }

    @Test func closuresGetTheirResultOnce() async throws {
        let agent = agent(.response(body: #"{"nick":"kim","level":3}"#))
        let outcome = Outcome<User>()
        let task = agent.start(UserInfo(id: 1), completion: outcome.take)
        #expect(try await outcome.result.get().value.level == 3)
        await agent.shutdown()
        #expect(task.state == .finished)
        task.cancel()
        #expect(task.state == .finished)
        #expect(outcome.count == 1)
    }

    @Test func impossibleRequestsFailByTheSamePath() async {
        let agent = agent(.response())
        let queue = DispatchQueue(label: "test")
        let outcome = Outcome<Response>()
        let task = agent.start(Get("http:// h"), on: queue) { result in
            dispatchPrecondition(condition: .onQueue(queue))
            outcome.take(result)
        }
        #expect(await outcome.code == .invalidURL)
        await agent.shutdown()
        #expect(task.state == .failed)
        #expect(outcome.count == 1)
    }

    @Test func callbacksComeOnTheirQueue() async {
        let own = DispatchQueue(label: "own")
        var configuration = NetworkConfiguration.test
        configuration.callbackQueue = DispatchQueue(label: "common")
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        let (first, second) = (Outcome<Response>(), Outcome<Response>())
        agent.start(Get()) { [queue = configuration.callbackQueue!] in
            dispatchPrecondition(condition: .onQueue(queue))
            first.take($0)
        }
        agent.start(Get(), on: own) {
            dispatchPrecondition(condition: .onQueue(own))
            dispatchPrecondition(condition: .notOnQueue(.main))
            second.take($0)
        }
        #expect(await first.code == nil)
        #expect(await second.code == nil)
    }

    @Test func oneTurnIsHandedOverAtOnce() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let queue = DispatchQueue(label: "test")
        let order = Mutex<[Int]>([])
        let done = Outcome<Response>()
        for number in 0..<100 {
            agent.start(Get("/\(number)"), on: queue) { result in
                order.withLock { $0.append(number) }
                // A block queued after the first callback runs after all callbacks of the turn.
                if number == 0 { queue.async { order.withLock { $0.append(-1) } } }
                if number == 99 { queue.async { done.take(result) } }
            }
        }
        await stub.waitForHeld(100)
        stub.releaseAll()
        _ = await done.result
        #expect(stub.handOvers == [100])
        #expect(order.withLock { $0 } == Array(0..<100) + [-1])
    }

    final class Screen: RequestDelegate {
        let outcome = Outcome<User>()
        let states = Mutex<[RunState]>([])

        func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {
            states.withLock { $0.append(task.state) }
            if let value = reply.value as? User {
                outcome.take(.success(Reply(value: value, response: reply.response)))
            }
        }

        func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {
            states.withLock { $0.append(task.state) }
            outcome.take(.failure(error))
        }
    }

    @Test func delegatesGetResults() async throws {
        let agent = agent(.response(body: #"{"nick":"kim","level":3}"#))
        let screen = Screen()
        agent.start(UserInfo(id: 1), delegate: screen)
        #expect(try await screen.outcome.result.get().value.nick == "kim")
        let other = Screen()
        agent.start(Failing(), delegate: other)
        #expect(await other.outcome.code == .applicationError)
        #expect(screen.states.withLock { $0 } == [.finished])
        #expect(other.states.withLock { $0 } == [.failed])
    }

    @Test func delegatesAreHeldWeakly() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        weak var gone: Screen?
        do {
            let screen = Screen()
            gone = screen
            agent.start(UserInfo(id: 1), delegate: screen)
        }
        await stub.waitForHeld(1)
        #expect(gone == nil)
        stub.releaseAll()
        await agent.shutdown()
    }

    @Test func prioritiesReachTheTransport() async {
        let stub = StubTransport(always: .hold)
        stub.suspend()
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(priority: .low), completion: outcome.take)
        #expect(stub.requests[0].priority == .low)
        #expect(task.state == .waiting)
        task.setPriority(.high)
        #expect(stub.events == [.submitted(1), .priorityChanged(1, .high)])
        stub.resume()
        await stub.waitForHeld(1)
        #expect(task.state == .running)
        stub.releaseAll()
        #expect(await outcome.code == nil)
    }

    @Test func queueIsBounded() async {
        var configuration = NetworkConfiguration.test
        configuration.limits.maxConcurrentTransfers = 2
        configuration.limits.queueLength = 1
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcomes = (0..<3).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get(), completion: outcome.take) }
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .queueFull)
        #expect(stub.requests.count == 3)
        await stub.waitForHeld(3)
        stub.releaseAll()
        for outcome in outcomes { #expect(await outcome.code == nil) }
    }

    @Test func idsAreUniqueAndCopiesNameTheSameRun() async {
        let agent = agent(.response())
        let tasks = (0..<10).map { _ in agent.start(Get(tag: "t")) { _ in } }
        #expect(Set(tasks.map(\.id)).count == 10)
        #expect(Set(tasks).count == 10)
        #expect(tasks[0].tag == "t")
        let copy = tasks[0]
        #expect(copy == tasks[0])
        await agent.shutdown()
    }
}

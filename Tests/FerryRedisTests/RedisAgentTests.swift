import Dispatch
import Ferry
import FerryRedis
import FerryTesting
import Testing

/// Agents that share a Redis.
@Suite(.timeLimit(.minutes(2))) struct RedisAgentTests {
    private let server = FakeRedis()

    private func page(
        _ path: String = "/page", _ policy: CachePolicy = .timeToLive(.seconds(60), write: .synchronous),
        headers: Headers = Headers(), mode: CacheMode = .cacheElseNetwork
    ) -> HTTPRequest<String> {
        var request = HTTPRequest(.get, path, headers: headers, as: String.self)
        request.cachePolicy = policy
        request.cacheMode = mode
        return request
    }

    /// Without the cache in memory: every hit comes from Redis.
    private func agent(
        _ stub: StubTransport, _ change: (inout RedisConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        let redis = patient(server.path, change)
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1")
        configuration.cache = CacheConfiguration { RedisCacheStorage(redis) }
        configuration.cache?.memoryBytes = 0
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    private func counting(_ headers: Headers = Headers()) -> StubTransport {
        StubTransport { .response(headers: headers, body: "answer \($0.number)") }
    }

    @Test func aResponseFetchedByOneServesTheOther() async throws {
        let (first, second) = (counting(), counting())
        let (one, other) = (agent(first), agent(second))
        #expect(try await one.send(page()).value == "answer 1")
        let reply = try await other.send(page())
        #expect(reply.isFromCache && reply.value == "answer 1" && second.requests.isEmpty)
        #expect(await other.cache.statistics.diskHits == 1)
        #expect(await one.cache.remove(page()))
        #expect(try await other.send(page()).isFromCache == false)
        await one.shutdown()
        await other.shutdown()
        server.stop()
    }

    @Test(arguments: [false, true]) func itStoresAsTheServerSays(isShared: Bool) async throws {
        let headers: Headers = ["Cache-Control": "max-age=60"]
        let (one, other) = (agent(counting(headers)), agent(counting(headers)))
        let page = self.page("/page", .http(shared: isShared, write: .synchronous))
        #expect(try await one.send(page).value == "answer 1")
        #expect(try await other.send(page).value == "answer 1")
        var change = page
        change.method = .post
        try await one.send(change)
        #expect(try await one.send(page).value == "answer 3")
        await one.shutdown()
        await other.shutdown()
        server.stop()
    }

    @Test func entriesOfOneUserAreNotFoundByAnother() async throws {
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = agent(stub)
        for policy in [CachePolicy.timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous)] {
            let kim = page("/page", policy, headers: ["Authorization": "Bearer canary-kim"])
            let lee = page("/page", policy, headers: ["Authorization": "Bearer canary-lee"])
            try await agent.send(kim)
            #expect(try await agent.send(lee).isFromCache == false)
            #expect(try await agent.send(kim).isFromCache)
        }
        #expect(!server.commands.joined().contains { $0.contains("canary") })
        await agent.shutdown()
        server.stop()
    }

    @Test func withoutRedisEveryRunAsksTheServerAndNoneFails() async throws {
        server.stop()
        let stub = counting()
        let agent = agent(stub)
        for number in 1...20 { #expect(try await agent.send(page()).value == "answer \(number)") }
        let statistics = await agent.cache.statistics
        #expect(statistics.misses == [.unavailable: 20] && statistics.isDisabled && statistics.failedWrites > 0)
        #expect((statistics.faults["io"] ?? 0) >= 1)
        await agent.shutdown()
    }

    // MARK: Leases

    @Test func oneFetchesAndTheOthersWait() async throws {
        let (first, second) = (counting(), counting())
        let agents = [first, second].map { stub in agent(stub) { $0.lease = .seconds(1000) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let reply = try await agents[number % 2].send(page("/\(number % 5)"))
                    #expect(reply.status == 200)
                }
            }
            try await group.waitForAll()
        }
        #expect(first.requests.count + second.requests.count == 5)
        for agent in agents { await agent.shutdown() }
        server.stop()
    }

    @Test func afterAFailedFetchTheNextWaiterFetches() async throws {
        let stub = StubTransport { request in
            request.number == 1
                ? .response(status: 500, headers: Headers(), body: "")
                : .response(headers: request.number == 2 ? ["Cache-Control": "no-store"] : Headers(), body: "x")
        }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        await #expect(throws: RequestError.self) { try await agent.send(page()) }
        for _ in 0..<2 { #expect(try await agent.send(page()).isFromCache == false) }
        #expect(try await agent.send(page()).isFromCache)
        await agent.shutdown()
        server.stop()
    }

    /// Until nobody has a lease, or for long enough.
    private func hasNoLease() async -> Bool {
        for _ in 0..<10_000 {
            if !server.names.contains(where: { $0.hasPrefix("ferry:lease:") }) { return true }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return false
    }

    @Test func aLeaseGrantedAfterTheEndOfItsRunIsReturned() async throws {
        let gate = DispatchSemaphore(value: 0)
        server.script { words in
            if words.contains("NX") { gate.wait() }
            return .honest
        }
        let agent = agent(counting()) { $0.lease = .seconds(1000) }
        let run = Task { try await agent.send(page()) }
        while !server.commands.contains(where: { $0.contains("NX") }) { await Task.yield() }
        run.cancel()
        await #expect(throws: RequestError.self) { try await run.value }
        gate.signal()
        while !server.names.contains(where: { $0.hasPrefix("ferry:lease:") }) && server.count("EVAL") == 0 {
            await Task.yield()
        }
        #expect(await hasNoLease())
        await agent.shutdown()
        server.stop()
    }

    @Test func aStaleResponseInsteadOfAnErrorEndsTheLease() async throws {
        let stub = StubTransport { request in
            request.number == 1 ? .response(body: "x") : .response(status: 500, headers: Headers(), body: "")
        }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        let page = page(
            "/page", .timeToLive(.microseconds(1), write: .synchronous),
            mode: .cacheElseNetwork(staleIfError: .seconds(1000)))
        #expect(try await agent.send(page).isFromCache == false)
        #expect(try await agent.send(page).isFromCache)
        #expect(stub.requests.count == 2 && server.count("EVAL") >= 1)
        #expect(await hasNoLease())
        await agent.shutdown()
        server.stop()
    }

    @Test(arguments: [CachePolicy.timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous)])
    func aRunWhoseLeaseHasExpiredDoesNotEndTheLaterLeaseOfItsProcess(policy: CachePolicy) async throws {
        let stub = StubTransport { _ in .hold }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        let slow = Task { try await agent.send(page("/page", policy)) }
        await stub.waitForHeld(1)
        let name = try #require(server.names.first { $0.hasPrefix("ferry:lease:") })
        let first = server[name]
        // It expires.
        server[name] = nil
        let next = Task { try await agent.send(page("/page", policy)) }
        await stub.waitForHeld(2)
        #expect(server[name] != nil && server[name] != first)
        slow.cancel()
        _ = await slow.result
        // Redis replies in the order of the commands.
        await agent.cache.remove(page("/other", policy))
        #expect(server.count("EVAL") == 1)
        #expect(server[name] != nil, "the later lease")
        next.cancel()
        _ = await next.result
        #expect(await hasNoLease())
        await agent.shutdown()
        server.stop()
    }

    /// A run that has waited for the whole lease time fetches without a lease.
    @Test func aRunWithoutALeaseDoesNotEndThatOfAnotherRun() async throws {
        let stub = StubTransport { _ in .hold }
        let agent = agent(stub) { $0.lease = .milliseconds(50) }
        let slow = Task { try await agent.send(page()) }
        await stub.waitForHeld(1)
        let waiter = Task { try await agent.send(page()) }
        await stub.waitForHeld(2)
        waiter.cancel()
        _ = await waiter.result
        await agent.cache.remove(page("/other"))
        #expect(server.count("EVAL") == 0)
        slow.cancel()
        _ = await slow.result
        #expect(await hasNoLease())
        await agent.shutdown()
        server.stop()
    }

    private struct Blocking: Request {
        let entered = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)
        var path: String { "/blocking" }
        func value(from response: Response) throws -> Response {
            entered.signal()
            gate.wait()
            return response
        }
    }

    @Test func aRunThatIsCancelledWithItsResponseEndsTheLease() async throws {
        let stub = StubTransport { $0.url.hasSuffix("/blocking") ? .response() : .hold }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        let (end, ended) = AsyncStream.makeStream(of: RequestError.Code?.self)
        let task = agent.start(page()) { result in
            switch result {
            case .success: ended.yield(nil)
            case .failure(let error): ended.yield(error.code)
            }
        }
        await stub.waitForHeld(1)
        // From here on nobody looks at responses.
        let blocking = Blocking()
        agent.start(blocking) { _ in }
        await Task.detached { blocking.entered.waitUntilSignalled() }.value
        stub.releaseAll()
        while task.state != .finishing { await Task.yield() }
        task.cancel()
        blocking.gate.signal()
        for await code in end {
            #expect(code == .cancelled)
            break
        }
        #expect(await hasNoLease())
        await agent.shutdown()
        server.stop()
    }

    @Test func aRunThatWaitsKeepsToItsDeadline() async throws {
        struct Urgent: Request {
            typealias Value = String
            var path: String { "/page" }
            var deadline: Duration? { .milliseconds(200) }
            var cachePolicy: CachePolicy { .timeToLive(.seconds(60)) }
        }
        // Another process holds it for ever.
        server.script { $0.contains("NX") ? .text("$-1\r\n") : .honest }
        let agent = agent(counting()) { $0.lease = .seconds(1000) }
        let error = await #expect(throws: RequestError.self) { try await agent.send(Urgent()) }
        #expect(error?.code == .timeout(.deadline))
        await agent.shutdown()
        server.stop()
    }

    // MARK: Leases of responses by RFC 9111

    private struct Served: Request {
        typealias Value = String
        var path = "/served"
        var headers = Headers()
        var deadline: Duration?
        var cachePolicy: CachePolicy { .http() }
        var statusValidation: StatusValidation? { .any }
    }

    @Test func oneFetchesAStorableResponseAndTheOthersWait() async throws {
        let (first, second) = (counting(["Cache-Control": "max-age=60"]), counting(["Cache-Control": "max-age=60"]))
        let agents = [first, second].map { stub in agent(stub) { $0.lease = .seconds(1000) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let reply = try await agents[number % 2].send(Served(path: "/\(number % 5)"))
                    #expect(reply.status == 200)
                }
            }
            try await group.waitForAll()
        }
        #expect(first.requests.count + second.requests.count == 5)
        for agent in agents { await agent.shutdown() }
        #expect(!server.names.contains { $0.contains("lease:") }, "each lease was ended")
        server.stop()
    }

    /// `no-store`, a failure, a cancel: the lease goes with the run that has it.
    @Test func aResponseThatIsNotStoredKeepsNobodyWaiting() async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1: .failure(.connect)
            case 2: .hold
            default: .response(headers: ["Cache-Control": "no-store"], body: "x")
            }
        }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        await #expect(throws: RequestError.self) { try await agent.send(Served()) }
        let cancelled = Task { try await agent.send(Served()) }
        await stub.waitForHeld(1)
        cancelled.cancel()
        _ = await cancelled.result
        #expect(try await agent.send(Served()).value == "x")
        let leases = server.commands.count { $0.contains("NX") }
        // From now on it is known that there is nothing to wait for.
        for _ in 0..<3 { _ = try await agent.send(Served()) }
        #expect(server.commands.count { $0.contains("NX") } == leases && leases == 3)
        await agent.shutdown()
        server.stop()
    }

    @Test func aRunThatWaitsForALeaseKeepsItsDeadline() async throws {
        server.script { $0.contains("NX") ? .text("$-1\r\n") : .honest }
        let agent = agent(counting(["Cache-Control": "max-age=60"])) { $0.lease = .seconds(1000) }
        let error = await #expect(throws: RequestError.self) {
            try await agent.send(Served(deadline: .milliseconds(200)))
        }
        #expect(error?.code == .timeout(.deadline))
        // These wait for nobody.
        for word in ["no-cache", "no-store", "only-if-cached"] {
            _ = try await agent.send(Served(headers: ["Cache-Control": word], deadline: .seconds(20)))
        }
        await agent.shutdown()
        server.stop()
    }

    /// A Redis whose replies about leases are all wrong.
    @Test(arguments: ["+QUEUED\r\n", ":1\r\n", "-ERR no\r\n", "*0\r\n", "$3\r\nyes\r\n"])
    func anyReplyToALeaseLetsTheRunContinue(answer: String) async throws {
        server.script { $0.contains("NX") || $0[0] == "EVAL" ? .text(answer) : .honest }
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = agent(stub) { $0.lease = .milliseconds(50) }
        for number in 0..<3 { #expect(try await agent.send(Served(path: "/\(number)")).status == 200) }
        #expect(stub.requests.count == 3)
        await agent.shutdown()
        server.stop()
    }
}

extension DispatchSemaphore {
    /// In a thread that may be blocked.
    fileprivate func waitUntilSignalled() { wait() }
}

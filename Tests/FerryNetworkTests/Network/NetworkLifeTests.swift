import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry

#if canImport(Glibc)
import Glibc

@testable import FerryTestSupport
#endif

/// Mass cancels, and agents that are released.
@Suite(.timeLimit(.minutes(3))) struct NetworkLifeTests {
    @Test(arguments: [1, 2])
    func cancelStormsGiveEachRunItsOneResult(loops: Int) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL, eventLoopCount: loops)
        configuration.limits.maxConcurrentTransfers = 100
        let agent = NetworkAgent(configuration: configuration)
        server.script(path: "/hold", [.expectHead, .keepOpen])
        let paths = ["/hello", "/delay/3", "/bytes/300000", "/chunked/5000", "/gzip/100000", "/close", "/hold"]
        let outcomes = (0..<2000).map { _ in Outcome<Response>() }
        let tasks = outcomes.enumerated().map { index, outcome in
            agent.start(Get(paths[index % paths.count]), completion: outcome.take)
        }
        await withTaskGroup(of: Void.self) { group in
            for part in 0..<4 {
                group.addTask {
                    var random = SystemRandomNumberGenerator()
                    for index in stride(from: part, to: 2000, by: 4).shuffled(using: &random) {
                        tasks[index].cancel()
                        for _ in 0..<Int.random(in: 0..<8, using: &random) { await Task.yield() }
                    }
                }
            }
        }
        var cancelled = 0
        for outcome in outcomes {
            switch await outcome.result {
            case .success(let reply): #expect(reply.status == 200)
            case .failure(let error):
                #expect(error.code == .cancelled)
                cancelled += 1
            }
        }
        // A seventh of them never gets a response.
        #expect(cancelled >= 2000 / 7)
        #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
        #expect(tasks.allSatisfy { $0.state.isEnd })
        let transport = agent.core.transport
        #expect(await eventually { transport.isAtRest }, "\(transport.statistics)")
        try await server.waitForOpenConnections(atMost: 0)
    }

    @Test func cancelStormsOfTasksLikewise() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        server.script(path: "/hold", [.expectHead, .keepOpen])
        let paths = ["/hello", "/delay/2", "/bytes/100000", "/close", "/hold"]
        let tasks = (0..<2000).map { index in
            Task { await code { () throws(RequestError) in try await agent.send(Get(paths[index % paths.count])) } }
        }
        await withTaskGroup(of: Void.self) { group in
            for part in 0..<4 {
                group.addTask {
                    for index in stride(from: part, to: 2000, by: 4).shuffled() {
                        tasks[index].cancel()
                        if index % 3 == 0 { await Task.yield() }
                    }
                }
            }
        }
        for (index, task) in tasks.enumerated() {
            let code = await task.value
            #expect(code == .cancelled || (code == nil && index % 5 != 4))
        }
        #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        await agent.shutdown()
        let transport = agent.core.transport
        #expect(await eventually { transport.isAtRest }, "\(transport.statistics)")
    }

    @Test func anAgentLetGoWithRunsInFlightStillAnswersThem() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        let outcomes = (0..<20).map { _ in Outcome<Response>() }
        weak var core: AgentCore?
        do {
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            core = agent.core
            for outcome in outcomes { agent.start(Get("/hold"), completion: outcome.take) }
        }
        try await server.waitForMark("held", count: 20)
        #expect(core != nil)
        server.signal("go")
        for outcome in outcomes { #expect(try await outcome.result.get().text == "held") }
        try await server.waitForOpenConnections(atMost: 0)
        #expect(await eventually { core == nil })
        #expect(outcomes.allSatisfy { $0.count == 1 })
    }

    @Test func aResponseThatWasReadToItsEndDoesNotKeepItsAgent() async throws {
        let server = try LoopbackServer()
        weak var core: AgentCore?
        let response: StreamedResponse
        do {
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            core = agent.core
            response = try await agent.stream(Get("/bytes/100000"))
            let body = try await response.body.collect(upTo: 100_000)
            #expect(body.count == 100_000)
        }
        #expect(await eventually { core == nil })
        try await server.waitForOpenConnections(atMost: 0)
        let rest = try await response.body.collect(upTo: 1)
        #expect(rest.isEmpty && response.status == 200)
    }

    @Test func anAgentLetGoAtRestClosesItsConnections() async throws {
        let server = try LoopbackServer()
        for _ in 0..<20 {
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL, eventLoopCount: 2))
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        }
        try await server.waitForOpenConnections(atMost: 0)
        #expect(server.connectionCount == 20)
    }

    @Test func theLastReferenceMayGoOnTheLoopsOwnThread() async throws {
        let server = try LoopbackServer()
        for _ in 0..<20 {
            weak var core: AgentCore?
            let task: Task<Bool, Never>
            do {
                let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
                core = agent.core
                let box = Box(agent)
                task = Task(executorPreference: agent.taskExecutor) {
                    let thread = pthread_self()
                    let text = await box.text(of: Get("/hello"))
                    // Freed here, on the thread of the event loop that it owns.
                    box.drop()
                    return pthread_self() == thread && text == "Hello, ferry"
                }
            }
            #expect(await task.value)
            #expect(await eventually { core == nil })
        }
        try await server.waitForOpenConnections(atMost: 0)
    }

    @Test func theLastReferenceMayGoInACallback() async throws {
        let server = try LoopbackServer()
        for _ in 0..<20 {
            let shared = Box(NetworkAgent(configuration: .init(baseURL: server.baseURL)))
            let outcome = Outcome<Response>()
            shared.start(Get("/hello")) { result in
                shared.drop()
                outcome.take(result)
            }
            #expect(try await outcome.result.get().text == "Hello, ferry")
        }
        try await server.waitForOpenConnections(atMost: 0)
    }

    private final class Box: Sendable {
        private let agent: Mutex<NetworkAgent?>
        init(_ agent: NetworkAgent) { self.agent = Mutex(agent) }
        func start(_ request: Get, completion: @escaping @Sendable (Result<Reply<Response>, RequestError>) -> Void) {
            _ = agent.withLock { $0 }?.start(request, completion: completion)
        }
        func text(of request: Get) async -> String? {
            guard let agent = agent.withLock({ $0 }) else { return nil }
            return try? await agent.send(request).text
        }
        func drop() { agent.withLock { $0 = nil } }
    }

    private final class Screen: RequestDelegate {
        let outcome = Outcome<Response>()
        func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {
            guard let value = reply.value as? Response else { return }
            outcome.take(.success(Reply(value: value, response: reply.response)))
        }
        func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {
            outcome.take(.failure(error))
        }
    }

    @Test func delegatesGetTheirResultsAndAreNotHeld() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let screen = Screen()
        agent.start(Get("/hello"), delegate: screen)
        #expect(try await screen.outcome.result.get().text == "Hello, ferry")
        let failed = Screen()
        agent.start(Get("/status/404"), delegate: failed)
        #expect(await failed.outcome.code == .invalidStatusCode(404))
        weak var gone: Screen?
        do {
            let screen = Screen()
            gone = screen
            agent.start(Get("/hold"), delegate: screen)
        }
        try await server.waitForMark("held")
        #expect(gone == nil)
        server.signal("go")
        await agent.shutdown()
        #expect(screen.outcome.count == 1)
        #expect(failed.outcome.count == 1)
    }

    @Test func httpsIsCarriedAsHTTPIs() async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        let agent = NetworkAgent(
            configuration: .init(
                baseURL: "https://localhost:\(server.port)", tls: .init(authorityFile: certificate.authorityFile)))
        await withTaskGroup(of: Bool.self) { group in
            for index in 0..<200 {
                group.addTask { (try? await agent.send(Get("/bytes/\(index * 100)")))?.bodyLength == index * 100 }
            }
            for await isRight in group { #expect(isRight) }
        }
        let body = [UInt8](repeating: 0x61, count: 3_000_000)
        #expect(try await agent.send(Full(path: "/echo/body", method: .post, body: .bytes(body))).bytes == body)
        #expect(server.connectionCount <= 64)
        #expect(server.handshakeCount == server.connectionCount)
        await agent.shutdown()
        try await server.waitForOpenConnections(atMost: 0)
    }
}

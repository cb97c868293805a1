import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Results of a server's responses.
@Suite(.timeLimit(.minutes(2))) struct NetworkResponseTests {
    @Test func valuesAreMadeOfBodies() async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/users/7") { _ in LoopbackResponse(json: #"{"nick":"kim","level":3}"#) }
        server.handle("GET", "/text") { _ in LoopbackResponse(text: "häj") }
        server.handle("/data") { _ in LoopbackResponse(body: [1, 2, 3]) }
        server.handle("/bytes") { _ in LoopbackResponse(body: [4, 5]) }
        server.handle("/nothing") { _ in LoopbackResponse(status: 204) }
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(try await agent.send(UserInfo(id: 7)).value == User(nick: "kim", level: 3))
        #expect(try await agent.get("/text", as: String.self) == "häj")
        #expect(try await agent.get("/data", as: Data.self) == Data([1, 2, 3]))
        #expect(try await agent.get("/bytes", as: [UInt8].self) == [4, 5])
        try await agent.send(HTTPRequest(.get, "/nothing", as: Void.self))
        #expect(await code { () throws(RequestError) in try await agent.send(Failing()) } == .invalidStatusCode(404))
        server.handle("/failing") { _ in LoopbackResponse(text: "x") }
        #expect(await code { () throws(RequestError) in try await agent.send(Failing()) } == .applicationError)
        server.handle("GET", "/users/7") { _ in LoopbackResponse(text: "canary-body") }
        let error = try #require(await fault { () throws(RequestError) in try await agent.send(UserInfo(id: 7)) })
        #expect(error.code == .invalidJSON)
        expectNoSecret(in: error)
        await agent.shutdown()
    }

    @Test func responsesSayWhereTheyComeFrom() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        let first = try await agent.send(Get(server.baseURL + "/header?X-A=1&X-B=2"))
        let second = try await agent.send(Get(server.baseURL + "/bytes/3"))
        #expect(first.headers["x-a"] == "1")
        #expect(first.headers["X-B"] == "2")
        #expect(first.peer?.address == "127.0.0.1")
        #expect(first.peer?.port == Int(server.port))
        #expect(first.httpVersion == .http11)
        #expect(!first.isReusedConnection)
        #expect(second.isReusedConnection)
        #expect(first.metrics.connect != nil)
        #expect(second.metrics.connect == nil)
        #expect(first.attempts == 1)
        #expect(second.metrics.bytesReceived > 3)
        for metrics in [first.metrics, second.metrics] {
            let phases = [metrics.nameLookup, metrics.connect, metrics.tls, metrics.firstByte].compactMap { $0 }
            #expect(phases.reduce(metrics.queue, +) <= metrics.total)
        }
        #expect(server.connectionCount == 1)
        await agent.shutdown()
    }

    @Test(arguments: [
        "/gzip/1000000", "/deflate/1000000", "/deflate/1000000?raw=1", "/chunked/1000000?chunk=777", "/bytes/1000000",
        "/until-close/1000000",
    ])
    func bodiesAreTheServersWhateverTheirForm(path: String) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let reply = try await agent.send(Get(path))
        #expect(reply.bytes == LoopbackServer.pattern(0..<1_000_000))
        #expect(reply.body == Data(reply.bytes))
        #expect(reply.response.withBytes { $0.count } == 1_000_000)
        await agent.shutdown()
    }

    @Test func bodiesOfEverySizeOutliveTheirAgent() async throws {
        let server = try LoopbackServer()
        var kept: [(Int, Response)] = []
        do {
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            for size in [0, 1, 63, 64, 1023, 1024, 1025, 4096, 4097, 16384, 65536, 200_000, 3_000_000] {
                kept.append((size, try await agent.send(Get("/bytes/\(size)")).response))
            }
            await agent.shutdown()
        }
        for (size, response) in kept {
            #expect(response.bodyLength == size)
            #expect(response.body == Data(LoopbackServer.pattern(0..<size)))
        }
    }

    @Test(arguments: [300, 404, 500, 999])
    func statusesThatAreNotAcceptedCarryTheStartOfTheirBody(status: Int) async throws {
        let server = try LoopbackServer()
        let body = String(repeating: "canary", count: 20_000)
        server.handle("/no") { _ in
            LoopbackResponse(status: status, headers: ["Set-Cookie": "canary", "X": "1"], text: body)
        }
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let error = try #require(
            await fault { () throws(RequestError) in try await agent.send(Get("/no?token=canary")) })
        #expect(error.code == .invalidStatusCode(status))
        #expect(error.phase == .processing)
        #expect(error.mayHaveBeenProcessed)
        #expect(error.response?.status == status)
        #expect(error.response?.headers["X"] == "1")
        #expect(error.response?.body == Array(body.utf8.prefix(65_536)))
        #expect(error.bytesReceived > 12_000)
        expectNoSecret(in: error)
        #expect(try await agent.send(Full(path: "/no", statusValidation: .codes([status]))).text == body)
        await agent.shutdown()
    }

    @Test func timeoutsOfTheConfigurationAndOfTheRequest() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.timeouts = Timeouts(idle: .milliseconds(500))
        let agent = NetworkAgent(configuration: configuration)
        #expect(
            await code { () throws(RequestError) in try await agent.send(Get("/delay/5000")) }
                == .timeout(.responseHead))
        #expect(try await agent.send(Full(path: "/delay/300", timeouts: Timeouts())).text == "Hello, ferry")
        let total = Full(path: "/delay/5000", timeouts: Timeouts(total: .milliseconds(100)))
        #expect(await code { () throws(RequestError) in try await agent.send(total) } == .timeout(.total))
        let deadline = Full(path: "/delay/5000", timeouts: Timeouts.none, deadline: .milliseconds(100))
        #expect(await code { () throws(RequestError) in try await agent.send(deadline) } == .timeout(.deadline))
        #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        await agent.shutdown()
    }

    @Test func slowAnswersWithinTheirTimeAreAnswers() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let outcomes = [1, 5, 20, 50, 100, 200].map { delay in
            let outcome = Outcome<Response>()
            agent.start(Get("/delay/\(delay)"), completion: outcome.take)
            return (delay, outcome)
        }
        for (delay, outcome) in outcomes {
            let reply = try await outcome.result.get()
            #expect(reply.text == "Hello, ferry")
            #expect(reply.metrics.total >= .milliseconds(delay) - .milliseconds(2))
        }
        await agent.shutdown()
    }
}

import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Which runs affect the health of hosts, and which do not.
@Suite(.timeLimit(.minutes(2))) struct HostHealthRunTests {
    private let bench = CacheBench()
    private var target: String { bench.path }

    private func agent(
        _ stub: StubTransport = StubTransport(always: .response()), _ change: (inout NetworkConfiguration) -> Void
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        change(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    @Test(arguments: [200, 302, 404]) func anInterceptorsAnswerSaysNothing(_ status: Int) async throws {
        let agent = agent {
            $0.redirectPolicy = .follow(upTo: 0)
            $0.interceptors = [
                Intercept { _, _ in InterceptedResponse(status: status, headers: ["Location": "/y"]) }
            ]
        }
        for _ in await agent.resultsOfBothWays(Get()) {}
        _ = await fault { try await agent.stream(Get()) }
        _ = await fault { try await agent.download(Get(), to: .file(target)) }
        #expect(agent.hostHealth.isEmpty)
        await agent.shutdown()
    }

    @Test(arguments: [RequestError.Code.decoding, .connect(.refused)])
    func whatAnAdapterOrAnInterceptorThrowsSaysNothing(_ code: RequestError.Code) async throws {
        let adapting = agent { $0.adapters = [Adapt { _, _ in throw RequestError(code) }] }
        let intercepting = agent { $0.interceptors = [Intercept { _, _ in throw RequestError(code) }] }
        // It throws before the second attempt.
        let count = Logbook()
        let stub = StubTransport(always: .response(status: 503))
        let later = agent(stub) {
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
            $0.adapters = [
                Adapt { _, _ in
                    count.note("asked")
                    if count.events.count.isMultiple(of: 2) { throw RequestError(code) }
                }
            ]
        }
        for agent in [adapting, intercepting, later] {
            for result in await agent.resultsOfBothWays(Get()) { #expect(result.error?.code == code) }
            #expect(agent.hostHealth.isEmpty)
        }
    }

    @Test func aTokenThatCannotBeFetchedSaysNothingOfTheServerItIsFor() async throws {
        let stub = StubTransport { $0.url.hasPrefix("http://auth/") ? .failure(.connect) : .response() }
        let agent = agent(stub) { $0.authenticator = Session(path: "http://auth/token") }
        for result in await agent.resultsOfBothWays(Get()) { #expect(result.error?.code == .connect(.failed)) }
        #expect(Array(agent.hostHealth.keys) == ["http://auth"])
        #expect(agent.health(of: "http://auth").isFailing)
    }

    @Test func aDownloadThatWasSentElsewhereSpeaksOfThatServer() async throws {
        let (server, mirror) = (try LoopbackServer(), try LoopbackServer())
        let gone = mirror.baseURL
        mirror.stop()
        server.handle("/file") { _ in LoopbackResponse(status: 302, headers: ["Location": gone + "/file"]) }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        #expect(await fault { try await agent.download(Get("/file"), to: .file(target)) } == .connect(.refused))
        let result = await withCheckedContinuation { continuation in
            agent.download(Get("/file"), to: .file(target)) { continuation.resume(returning: $0) }
        }
        #expect(result.error?.code == .connect(.refused))
        #expect(agent.health(of: gone).isFailing && !agent.health(of: server.baseURL).isFailing)
        await agent.shutdown()
        server.stop()
    }
}

import FerryTesting
import FerryTransport
import Testing

@testable import Ferry

/// One run of a case with an agent of its own, and with a cache: I1, the handles of I2, and I3 to I6 are checked here.
final class FaultStage {
    let server: LoopbackServer
    private let setup: FaultSetup
    private let origin: String
    private(set) var elapsed = Duration.zero

    init(_ script: LoopbackScript, _ setup: FaultSetup, uses: Int?, server: LoopbackServer) {
        self.server = server
        self.setup = setup
        if !script.steps.isEmpty { server.install(.init(setup.place ?? .path("/fault"), uses: uses, script)) }
        setup.install(server)
        origin = setup.elsewhere ?? setup.host.map { "http://\($0):\(server.port)" } ?? server.baseURL
    }

    /// The requested target, including secrets.
    private func made(for play: Play) -> HTTPRequest<Response> {
        var probe = setup.probe
        // Streams and downloads ignore it.
        if play.isKept || play.form != .buffered { probe.cachePolicy = FaultCache.policy }
        if probe.path.isEmpty {
            let query = setup.query.map { $0 + "&" } ?? ""
            let target = "\(origin)\(setup.path)?\(query)\(Canary.query)"
            probe.path = target.replacing("://", with: "://" + Canary.userInfo, maxReplacements: 1)
        }
        return probe
    }

    /// The target as an error shows it: `cut=***&raw=***&token=***`.
    var shownURL: String {
        let query = (setup.query ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } + "=***&" }.joined()
        return "\(origin)\(setup.path)?\(query)token=***"
    }

    func play(
        _ play: Play, _ sourceLocation: SourceLocation,
        _ meanwhile: (FaultRun, FaultStage, NetworkAgent) async throws -> Void
    ) async throws -> FaultOutcome {
        let (probe, cache, watch) = (made(for: play), FaultCache(), SecretWatch())
        var configuration = setup.configuration
        configuration.cache = cache.configuration
        watch.look(into: &configuration)
        var agent: NetworkAgent? = NetworkAgent(configuration: configuration)
        let run = try FaultRun(probe, play, agent!)
        try await meanwhile(run, self, agent!)
        let outcome = await run.outcome
        elapsed = run.callback.elapsed(whereMoreThan: setup.due?.time ?? setup.bound)
        // A task may have to wait for its turn among all the tests, which the agent cannot influence.
        if play.way == .closure || ProcessHoldings.isAlone {
            #expect(elapsed < setup.bound, "I5: \(play): it took \(elapsed)", sourceLocation: sourceLocation)
        }
        setup.due?.expectNotEarly(run.callback.span, play, sourceLocation)
        run.place.expectNoPartOfAFile(outcome, isDownload: play.form == .download, sourceLocation)
        await cache.expectNoPart(outcome, of: probe, play, keeps: setup.keeps, agent!, sourceLocation)
        try await agent!.expectNext(setup.next, after: server, sourceLocation)
        await agent!.shutdown()
        if let state = run.state { #expect(state == Self.state(outcome), sourceLocation: sourceLocation) }
        #expect(
            run.callback.count == run.expectedCallbacks, "I1: exactly one callback", sourceLocation: sourceLocation)
        watch.keep(outcome)
        await watch.expectNoSecret(agent!.core, asking: probe, sourceLocation)
        cache.expectNoSecret(outcome, sourceLocation)
        let transport = agent!.core.transport
        weak let core = agent!.core
        agent = nil
        if setup.seesClose { try await server.waitForOpenConnections(atMost: 0) }
        #expect(
            await eventually { transport.isAtRest }, "I2: \(transport.statistics)", sourceLocation: sourceLocation)
        #expect(await eventually { core == nil }, "I2: the agent is still there", sourceLocation: sourceLocation)
        return outcome
    }

    private static func state(_ outcome: FaultOutcome) -> RunState {
        switch outcome {
        case .success: .finished
        case .failure(.cancelled): .cancelled
        case .failure: .failed
        }
    }
}

extension NetworkAgent {
    /// I4: the same agent continues to work.
    func expectNext(
        _ next: FaultSetup.Next, after server: LoopbackServer, _ sourceLocation: SourceLocation
    ) async throws {
        switch next {
        case .nowhere: break
        case .sameServer: await expectAnswer(from: server.baseURL + "/hello", sourceLocation)
        case .url(let url): await expectAnswer(from: url, sourceLocation)
        case .otherServer:
            let other = try LoopbackServer()
            await expectAnswer(from: other.baseURL + "/hello", sourceLocation)
            other.stop()
        }
    }

    private func expectAnswer(from url: String, _ sourceLocation: SourceLocation) async {
        do throws(RequestError) {
            let reply = try await send(Get(url))
            #expect(reply.text == "Hello, ferry" || !url.hasSuffix("/hello"), "I4", sourceLocation: sourceLocation)
        } catch {
            Issue.record("I4: \(error)", sourceLocation: sourceLocation)
        }
    }
}

import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry

/// A server, and an agent for it that is searched for secrets. At the end it checks that nothing is left of the runs,
/// and that the agent still works: the invariants of the fault table, for everything that `body` does.
///
/// `next` is the target of the request after it, if the agent is not shut down by then; it may be configured to fail
/// there. The transfers of the agent are noted in `transfers`.
func withFlow(
    server options: LoopbackServer.Options = .init(), next: FaultSetup.Next = .otherServer,
    memoryBound: Int = FaultSetup().memoryBound, transfers: TransferNotes? = nil,
    _ configure: (inout NetworkConfiguration) -> Void = { _ in },
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (LoopbackServer, NetworkAgent) async throws -> Void
) async throws {
    MachinePauses.beginWatch()
    await FaultBaseline.isWarm.value
    let baseline = FaultBaseline()
    let server = try LoopbackServer(options)
    var configuration = NetworkConfiguration(baseURL: server.baseURL)
    if let certificate = options.certificate { configuration.tls.authorityFile = certificate.authorityFile }
    configure(&configuration)
    try await withWatchedAgent(configuration, transfers, sourceLocation) { agent in
        try await body(server, agent)
        if !agent.core.isClosed { try await agent.expectNext(next, after: server, sourceLocation) }
    }
    server.stop()
    await baseline.expectNoDescriptorsLeft("", sourceLocation)
    baseline.expectBoundedMemory(memoryBound, "", sourceLocation)
}

private func withWatchedAgent(
    _ configuration: NetworkConfiguration, _ transfers: TransferNotes?, _ sourceLocation: SourceLocation,
    _ body: (NetworkAgent) async throws -> Void
) async throws {
    var configuration = configuration
    let watch = SecretWatch()
    watch.look(into: &configuration)
    let network = makeNetworkTransport(configuration)
    let agent = NetworkAgent(configuration: configuration, transport: transfers?.noting(network) ?? network)
    try await body(agent)
    await agent.shutdown()
    await watch.expectNoSecret(agent.core, sourceLocation)
    let (transport, core) = (agent.core.transport, agent.core)
    #expect(await eventually { transport.isAtRest }, "\(transport.statistics)", sourceLocation: sourceLocation)
    #expect(await eventually { core.isAtRest }, "a run is left", sourceLocation: sourceLocation)
}

extension AgentCore {
    /// No run is registered any more.
    var isAtRest: Bool {
        state.withLock { state in
            state.table.count == 0 && state.table.all.isEmpty && state.controls.isEmpty && state.resting == 0
                && state.undelivered == 0 && state.undecided == 0
        }
    }
}

extension NetworkAgent {
    /// The result of one run.
    func result<R: Request>(_ request: R, _ way: Way = .awaited) async -> Result<Reply<R.Value>, RequestError> {
        switch way {
        case .awaited:
            do throws(RequestError) {
                return .success(try await send(request))
            } catch {
                return .failure(error)
            }
        case .closure:
            let outcome = Outcome<R.Value>()
            start(request, completion: outcome.take)
            return await outcome.result
        }
    }

    /// One run by await, then one by closure.
    func resultsOfBothWays<R: Request>(_ request: R) async -> [Result<Reply<R.Value>, RequestError>] {
        [await result(request, .awaited), await result(request, .closure)]
    }

    /// One run by await, then one by closure; both must succeed.
    func sendBothWays<R: Request>(_ request: R) async throws -> [Reply<R.Value>] {
        try await resultsOfBothWays(request).map { try $0.get() }
    }

    /// The same, with a change of the request.
    func sendBothWays<R: Request>(_ request: R, _ change: (inout R) -> Void) async throws -> [Reply<R.Value>] {
        var request = request
        change(&request)
        return try await sendBothWays(request)
    }
}

/// A gate: holds arrivals until it is opened, for good.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [CheckedContinuation<Void, Never>] = []
        var arrived = 0
    }

    private let state = Mutex(State())

    /// The number of arrivals so far.
    var arrived: Int { state.withLock { $0.arrived } }

    func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until it is open; the arrival that completes the count opens it.
    func pass(openingAt count: Int = .max) async {
        await withCheckedContinuation { continuation in
            let released = state.withLock { state in
                state.arrived += 1
                state.waiters.append(continuation)
                if state.arrived >= count { state.isOpen = true }
                if !state.isOpen { return [CheckedContinuation<Void, Never>]() }
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in released { waiter.resume() }
        }
    }
}

extension NetworkAgent {
    /// Waits until this much time has passed on the clock of this agent's event loop. A run without a response times
    /// out after it, so all work that the loop had to do meanwhile is done.
    func pass(_ time: Duration, _ server: LoopbackServer, sourceLocation: SourceLocation = #_sourceLocation) async {
        server.script(path: "/silence", uses: 1, [.expectHead, .keepOpen])
        var silence = HTTPRequest(.get, server.baseURL + "/silence")
        silence.timeouts = Timeouts(idle: nil, total: time)
        let error = await result(silence).error
        #expect(error?.code == .timeout(.total), sourceLocation: sourceLocation)
    }
}

extension RetryPolicy {
    /// Four attempts, with negligible waits and no random ones.
    static let quick = RetryPolicy.exponential(maxAttempts: 4, baseDelay: .milliseconds(1), jitter: .none)

    /// The same, with a change.
    static func quick(_ change: (inout RetryPolicy) -> Void) -> RetryPolicy {
        var policy = quick
        change(&policy)
        return policy
    }
}

/// A response without a body, after whatever the request carries.
func unwanted(_ status: Int, _ fields: String = "") -> LoopbackScript {
    [.expectBody, .send(head("\(status) X", fields + "Content-Length: 0\r\n")), .serve]
}

extension ResponseBody {
    /// Reads all of it, counts the bytes, and returns the error at the end.
    func failure(into bytes: inout Int) async -> RequestError? {
        do throws(RequestError) {
            for try await piece in self { bytes += piece.count }
            return nil
        } catch {
            return error
        }
    }
}

extension NetworkAgent {
    /// The error of a stream that does not start.
    func streamFailure(_ request: some Request) async -> RequestError? {
        await fault { () throws(RequestError) in try await stream(request) }
    }
}

/// A server, and an agent for it that is shut down in the end.
func withExchanges(
    _ change: (inout NetworkConfiguration) -> Void = { _ in },
    _ body: (NetworkAgent, LoopbackServer) async throws -> Void
) async throws {
    try await withServer(engine: .automatic, change) { server, agent in
        try await body(agent, server)
        await agent.shutdown(grace: .zero)
        // Scripts that read nothing until then see the end.
        server.signal("over")
        try await server.waitForOpenConnections(atMost: 0)
    }
}

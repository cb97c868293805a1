import FerryTesting
import FerryTransport
import Foundation
import Synchronization
import Testing

@testable import Ferry

/// What an error must say (I7).
struct ExpectedFault {
    var code: RequestError.Code
    var phases: Set<RequestPhase>
    /// Whether the server may have acted on the request.
    var processed: Bool
    var attempts: Int
    /// Bytes of the answer, head and body, when they are known exactly.
    var received: UInt64?
    var needsMessage = true
}

/// Runs a case that must fail, by await and by closure, and checks every invariant of the fault table.
func expectFault(
    _ script: LoopbackScript = [], _ code: RequestError.Code, _ phases: RequestPhase..., processed: Bool = true,
    attempts: Int = 1, received: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    setUp: (inout FaultSetup) throws -> Void = { _ in },
    after: (LoopbackServer) throws -> Void = { _ in }, error look: (RequestError) -> Void = { _ in }
) async throws {
    var setup = FaultSetup()
    try setUp(&setup)
    let expected = ExpectedFault(
        code: code, phases: Set(phases), processed: processed, attempts: attempts, received: received.map(UInt64.init))
    for way in Way.allCases {
        let server = try LoopbackServer(setup.server)
        let (result, url) = try await play(script, setup, way, server, sourceLocation)
        switch result {
        case .success(let reply):
            Issue.record("\(way): \(reply.status) with \(reply.bodyLength) bytes", sourceLocation: sourceLocation)
        case .failure(let error):
            check(error, expected, url: setup.checksURL ? url : nil, sourceLocation)
            look(error)
        }
        try after(server)
        server.stop()
    }
}

/// Likewise a case that must succeed in spite of it all.
func expectAnswer(
    _ script: LoopbackScript = [], sourceLocation: SourceLocation = #_sourceLocation,
    setUp: (inout FaultSetup) throws -> Void = { _ in }, check: (Response, LoopbackServer) throws -> Void
) async throws {
    var setup = FaultSetup()
    try setUp(&setup)
    for way in Way.allCases {
        let server = try LoopbackServer(setup.server)
        let (result, _) = try await play(script, setup, way, server, sourceLocation)
        switch result {
        case .success(let reply): try check(reply.response, server)
        case .failure(let error): Issue.record("\(way): \(error)", sourceLocation: sourceLocation)
        }
        server.stop()
    }
}

/// One run of a case through an agent of its own: I1, I2, I4 to I6 are checked here.
private func play(
    _ script: LoopbackScript, _ setup: FaultSetup, _ way: Way, _ server: LoopbackServer,
    _ sourceLocation: SourceLocation
) async throws -> (Result<Reply<Response>, RequestError>, String) {
    if !script.steps.isEmpty { server.install(.init(setup.place ?? .path("/fault"), script)) }
    setup.install(server)
    let origin = setup.host.map { "http://\($0):\(server.port)" } ?? server.baseURL
    var probe = setup.probe
    if probe.path.isEmpty {
        let mark = origin.range(of: "://")!.upperBound
        let query = setup.query.map { $0 + "&" } ?? ""
        probe.path = "\(origin[..<mark])\(Canary.userInfo)\(origin[mark...])\(setup.path)?\(query)\(Canary.query)"
    }
    let watch = SecretWatch()
    var configuration = setup.configuration
    watch.look(into: &configuration)
    var agent: NetworkAgent? = NetworkAgent(configuration: configuration)
    let (result, outcome) = await start(probe, way, agent!, by: setup.bound, sourceLocation)
    let other = try setup.next == .otherServer ? LoopbackServer() : server
    if setup.next != .nowhere { await next(agent!, other.baseURL, sourceLocation) }
    await agent!.shutdown()
    #expect(outcome.count == (way == .closure ? 1 : 0), "I1: exactly one callback", sourceLocation: sourceLocation)
    watch.keep(result)
    await watch.expectNoSecret(agent!.core, asking: probe, sourceLocation)
    let transport = agent!.core.transport
    weak let core = agent!.core
    agent = nil
    if setup.seesClose { try await server.waitForOpenConnections(atMost: 0) }
    #expect(await eventually { transport.isAtRest }, "I2: \(transport.statistics)", sourceLocation: sourceLocation)
    #expect(await eventually { core == nil }, "I2: the agent is still there", sourceLocation: sourceLocation)
    return (result, "\(origin)\(setup.path)?\(redacted(setup.query))token=***")
}

/// `cut=1&raw=1` as an error writes it.
private func redacted(_ query: String?) -> String {
    (query ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } + "=***&" }.joined()
}

private func start(
    _ probe: Probe, _ way: Way, _ agent: NetworkAgent, by bound: Duration, _ sourceLocation: SourceLocation
) async -> (Result<Reply<Response>, RequestError>, TimedOutcome) {
    let outcome = TimedOutcome()
    switch way {
    case .awaited:
        do throws(RequestError) {
            return (.success(try await agent.send(probe)), outcome)
        } catch {
            return (.failure(error), outcome)
        }
    case .closure:
        agent.start(probe, completion: outcome.take)
        let result = await outcome.result
        // By closure only: a task may have to wait for its turn among all the tests, which is not the agent's doing.
        #expect(outcome.elapsed < bound, "I5: it took \(outcome.elapsed)", sourceLocation: sourceLocation)
        return (result, outcome)
    }
}

/// An outcome that knows when it came, by the clock of the thread that brought it.
final class TimedOutcome: Sendable {
    private let outcome = Outcome<Response>()
    private let times = Mutex((from: ContinuousClock.now, to: ContinuousClock.now))

    var take: @Sendable (Result<Reply<Response>, RequestError>) -> Void {
        { result in
            self.times.withLock { $0.to = .now }
            self.outcome.take(result)
        }
    }

    /// The time is counted from here on.
    func begin() { times.withLock { $0.from = .now } }

    var elapsed: Duration { times.withLock { $0.to - $0.from } }
    var count: Int { outcome.count }
    var result: Result<Reply<Response>, RequestError> { get async { await outcome.result } }
}

/// I4.
private func next(_ agent: NetworkAgent, _ baseURL: String, _ sourceLocation: SourceLocation) async {
    do throws(RequestError) {
        let reply = try await agent.send(Get(baseURL + "/hello"))
        #expect(reply.text == "Hello, ferry", "I4", sourceLocation: sourceLocation)
    } catch {
        // A server with a certificate of its own making is asked by the same agent, so it is the fault that is left.
        Issue.record("I4: \(error)", sourceLocation: sourceLocation)
    }
}

/// I6 and I7.
func check(
    _ error: RequestError, _ expected: ExpectedFault, url: String?, _ sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(error.code == expected.code, "\(error)", sourceLocation: sourceLocation)
    #expect(expected.phases.contains(error.phase), "\(error)", sourceLocation: sourceLocation)
    #expect(error.mayHaveBeenProcessed == expected.processed, "\(error)", sourceLocation: sourceLocation)
    #expect(error.attempts == expected.attempts, "\(error)", sourceLocation: sourceLocation)
    // Those of the last attempt only.
    if error.redirects.isEmpty {
        #expect((error.bytesSent > 0) == expected.processed, "\(error)", sourceLocation: sourceLocation)
    }
    if let received = expected.received {
        #expect(error.bytesReceived == received, "\(error)", sourceLocation: sourceLocation)
    }
    if let url { #expect(error.url == url, sourceLocation: sourceLocation) }
    if expected.needsMessage { #expect(!error.message.isEmpty, "\(error)", sourceLocation: sourceLocation) }
    expectNoSecret(in: error, sourceLocation)
}

/// I6.
func expectNoSecret(in error: RequestError, _ sourceLocation: SourceLocation = #_sourceLocation) {
    let texts =
        SecretWatch.texts(of: error) + [
            error.message, error.url, error.code.description, (error as any Error).localizedDescription,
            "\(Optional(error) as Any)", "\(Result<Int, RequestError>.failure(error))",
            error.cause.map { String(describing: $0) } ?? "",
        ]
    for text in texts {
        for word in Canary.words { #expect(!text.contains(word), "I6", sourceLocation: sourceLocation) }
    }
}

/// The error that `body` throws.
func fault<T>(_ body: () async throws(RequestError) -> T) async -> RequestError? {
    do throws(RequestError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}

extension Transporting {
    /// Nothing runs, nothing is open, and every run that was taken on was answered.
    var isAtRest: Bool {
        let now = statistics
        return now.waiting == 0 && now.resolving == 0 && now.running == 0 && now.sockets == 0 && now.handles == 0
            && now.submitted == now.finished
    }
}

/// Whether it becomes true, asked again and again; false after a time that is longer than any machine is busy.
func eventually(within bound: Duration = .seconds(60), _ isTrue: () -> Bool) async -> Bool {
    let end = ContinuousClock.now + bound
    while !isTrue() {
        if ContinuousClock.now > end { return false }
        // Only so that looking does not take the processor from what is looked for.
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}

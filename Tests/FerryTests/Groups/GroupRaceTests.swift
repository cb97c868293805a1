import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Groups of every shape, ended at random in every way: each has its one result, and nothing is left behind.
@Suite(.timeLimit(.minutes(2))) struct GroupRaceTests {
    /// How often each kind of end occurred.
    private final class Ends: Sendable {
        private let counts: Mutex<[Int]>

        init(_ groups: Int) { counts = Mutex([Int](repeating: 0, count: groups)) }

        func add(_ group: Int) { counts.withLock { $0[group] += 1 } }

        var isExactlyOnce: Bool { counts.withLock { $0.allSatisfy { $0 == 1 } } }
    }

    private static let paths = ["/hello", "/hello", "/hello", "/hello", "/hello", "/missing", "/closing", "/data"]

    /// A group of groups, up to this depth.
    private static func group(_ random: inout SplitMix, depth: Int) -> ChainRequest<Int> {
        let path = paths.randomElement(using: &random)!
        let request = ChainRequest(Get(path)).map { $0.status }
        if depth == 0 { return request }
        let inner = (0..<Int.random(in: 0...4, using: &random)).map { _ in group(&random, depth: depth - 1) }
        let limit = Int.random(in: 1...4, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return ChainRequest(BatchRequest(inner, atMost: limit)).map { $0.count }
        case 1: return ChainRequest(BatchRequest(inner, .collectAll, atMost: limit)).map { $0.count }
        case 2: return inner.reduce(request) { chain, next in chain.then { _ in next } }
        case 3: return request.then { _ in BatchRequest(inner).deadline(.milliseconds(30)) }.map { $0.count }
        default:
            let isFaulty = Bool.random(using: &random)
            return request.onValue { _ in
                await Task.yield()
                if isFaulty { throw Oops() }
            }.then { _ in inner.first }.map { $0 ?? 0 }
        }
    }

    private func isExpected(_ error: RequestError) -> Bool {
        switch error.code {
        case .cancelled, .shutdown, .applicationError, .timeout(.deadline), .timeout(.queue), .connectionClosed,
            .invalidStatusCode(404):
            true
        default: false
        }
    }

    private func server() throws -> LoopbackServer {
        let server = try LoopbackServer()
        server.handle("/data") { _ in LoopbackResponse(status: 302, headers: ["Location": "/hello"]) }
        server.handle("/missing") { _ in LoopbackResponse(status: 404) }
        server.script(path: "/closing", [.close])
        return server
    }

    @Test(arguments: 0..<6) func everyGroupEndsOnce(round: Int) async throws {
        let server = try server()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.limits.maxConcurrentTransfers = 16
        let agent = NetworkAgent(configuration: configuration)
        var random = SplitMix(state: UInt64(round) &* 104_729 &+ 3)
        let plan = (0..<120).map { _ in
            (
                group: Self.group(&random, depth: 3), yields: Int.random(in: 0...600, using: &random),
                kind: Int.random(in: 0..<4, using: &random)
            )
        }
        let ends = Ends(plan.count)
        await withTaskGroup(of: Void.self) { tasks in
            for (index, one) in plan.enumerated() {
                tasks.addTask {
                    await play(one.group, one.kind, one.yields, agent) { ends.add(index) }
                }
            }
            if round >= 4 {
                tasks.addTask {
                    while server.requestCount < 100 * (round - 3) && !ends.isExactlyOnce { await Task.yield() }
                    await agent.shutdown(grace: .milliseconds(round - 4))
                }
            }
        }
        await agent.shutdown()
        #expect(ends.isExactlyOnce)
        #expect(agent.core.state.withLock { $0.groups.isEmpty && $0.table.count == 0 && $0.controls.isEmpty })
    }

    /// One group: awaited or with a closure, cancelled after this many turns of the scheduler or not at all.
    private func play(
        _ group: ChainRequest<Int>, _ kind: Int, _ yields: Int, _ agent: NetworkAgent,
        _ ended: @escaping @Sendable () -> Void
    ) async {
        if kind < 2 {
            let task = Task {
                if let error = await fault({ () throws(RequestError) in try await agent.send(group) }) {
                    #expect(isExpected(error), "\(error)")
                }
                ended()
            }
            if kind == 1 {
                for _ in 0..<yields { await Task.yield() }
                task.cancel()
            }
            await task.value
        } else {
            let outcome = KeptResult<Int>()
            let run = agent.start(group) { result in
                ended()
                outcome.take(result)
            }
            if kind == 3 {
                for _ in 0..<yields { await Task.yield() }
                run.cancel()
            }
            if let error = await outcome.error { #expect(isExpected(error), "\(error)") }
        }
    }
}

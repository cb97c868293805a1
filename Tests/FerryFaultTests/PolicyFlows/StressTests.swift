import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Many runs through all policies at once, ended at random: each gets its one result, and nothing is left behind.
@Suite(.timeLimit(.minutes(2))) struct StressTests {
    /// The outcomes of the runs of one round.
    private final class Count: Sendable {
        private let counts: Mutex<[Int]>

        init(_ runs: Int) { counts = Mutex([Int](repeating: 0, count: runs)) }

        func add(_ run: Int) { counts.withLock { $0[run] += 1 } }

        var isExactlyOnce: Bool { counts.withLock { $0.allSatisfy { $0 == 1 } } }
    }

    private static let paths = ["/data", "/start", "/busy", "/far", "/hello", "/closing"]

    private func install(on server: LoopbackServer, _ second: LoopbackServer) -> TokenServer {
        let tokens = TokenServer(on: server)
        let busy = Mutex(0)
        server.handle("/start") { _ in LoopbackResponse(status: 302, headers: ["Location": "/data"]) }
        server.handle("/far") { _ in LoopbackResponse(status: 307, headers: ["Location": second.baseURL + "/hello"]) }
        server.handle("/busy") { _ in
            let number = busy.withLock { busy in
                busy += 1
                return busy
            }
            if number.isMultiple(of: 7) { tokens.expire() }
            return LoopbackResponse(status: number.isMultiple(of: 3) ? 200 : 503)
        }
        server.script(path: "/closing", [.close])
        return tokens
    }

    private func configure(_ configuration: inout NetworkConfiguration) {
        configuration.authenticator = Session(token: TokenServer.expired)
        configuration.retryPolicy = .exponential(
            maxAttempts: 4, baseDelay: .milliseconds(1), maxDelay: .milliseconds(3))
        configuration.retryBudget = RetryBudget(ratio: 1, minimumPerSecond: 1000, burst: 1000)
        configuration.limits.maxConcurrentTransfers = 32
    }

    /// The codes that such a run may end with.
    private func isExpected(_ error: RequestError, _ path: String) -> Bool {
        switch error.code {
        case .cancelled, .shutdown: true
        case .connectionClosed, .connectionReset: path == "/closing"
        case .invalidStatusCode(503): path == "/busy"
        case .invalidStatusCode(401): true
        default: false
        }
    }

    @Test("Runs that are cancelled at any point end once each", arguments: 0..<4)
    func randomCancels(round: Int) async throws {
        let second = try LoopbackServer()
        var random = SplitMix(state: UInt64(round) &* 7919 &+ 1)
        let plan = (0..<300).map { _ in
            (
                path: Self.paths.randomElement(using: &random)!, yields: Int.random(in: 0...400, using: &random),
                kind: Int.random(in: 0..<4, using: &random)
            )
        }
        try await withFlow(configure) { server, agent in
            _ = install(on: server, second)
            let count = Count(plan.count)
            await withTaskGroup(of: Void.self) { group in
                for (index, one) in plan.enumerated() {
                    group.addTask { await play(one, index, agent, count) }
                }
            }
            await agent.shutdown()
            #expect(count.isExactlyOnce)
        }
    }

    @Test("A shutdown in between ends all of them, once each", arguments: 0..<3)
    func shutdownInTheMidst(round: Int) async throws {
        let second = try LoopbackServer()
        var random = SplitMix(state: UInt64(round) &+ 77)
        let plan = (0..<200).map { _ in
            (
                path: Self.paths.randomElement(using: &random)!, yields: 10_000,
                kind: Int.random(in: 0..<4, using: &random)
            )
        }
        try await withFlow(configure) { server, agent in
            _ = install(on: server, second)
            let count = Count(plan.count)
            await withTaskGroup(of: Void.self) { group in
                for (index, one) in plan.enumerated() {
                    group.addTask { await play(one, index, agent, count) }
                }
                group.addTask {
                    _ = await eventually { server.requestCount > 50 * (round + 1) }
                    await agent.shutdown(grace: .milliseconds(round))
                }
            }
            #expect(count.isExactlyOnce)
        }
    }

    /// One run: awaited, streamed, or with a closure, with a cancel after this many turns of the scheduler.
    private func play(
        _ one: (path: String, yields: Int, kind: Int), _ index: Int, _ agent: NetworkAgent, _ count: Count
    ) async {
        let call = Get(one.path)
        switch one.kind {
        case 0, 1:
            let task = Task {
                if let error = await agent.result(call).error {
                    #expect(isExpected(error, one.path), "\(error)")
                }
                count.add(index)
            }
            for _ in 0..<one.yields { await Task.yield() }
            task.cancel()
            await task.value
        case 2:
            let task = Task {
                do throws(RequestError) {
                    _ = try await agent.stream(call).body.collect(upTo: 1000)
                } catch {
                    #expect(isExpected(error, one.path), "\(error)")
                }
                count.add(index)
            }
            for _ in 0..<one.yields { await Task.yield() }
            task.cancel()
            await task.value
        default:
            let outcome = Outcome<Response>()
            let run = agent.start(call) { result in
                count.add(index)
                outcome.take(result)
            }
            for _ in 0..<one.yields { await Task.yield() }
            run.cancel()
            if let error = await outcome.error { #expect(isExpected(error, one.path), "\(error)") }
        }
    }
}

internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// The load: so many tasks, each sending one request after the other through one agent.
struct BenchRun: Sendable {
    private let plan: BenchPlan
    private let request: BenchRequest
    private let recorder: BenchRecorder

    init(_ plan: BenchPlan) {
        self.plan = plan
        request = BenchRequest(path: plan.url ?? "", headers: plan.headers, jsonSchema: plan.schema)
        recorder = BenchRecorder(stripes: min(16, plan.concurrency))
    }

    /// Ends when the count or the time is reached, or its task is cancelled; what is on its way then is waited for,
    /// unless it was the latter.
    func perform() async -> BenchSummary {
        var configuration = NetworkConfiguration()
        configuration.loops = plan.loops
        configuration.limits.transfersPerHost = plan.connections
        configuration.limits.concurrentTransfers = max(plan.connections, configuration.limits.concurrentTransfers)
        let agent = NetworkAgent(configuration: configuration)
        let start = monotonicNanoseconds()
        let usage = ProcessUsage.now
        let tickets = BenchTickets(plan, start: start)

        await withTaskGroup(of: Void.self) { group in
            let live = Console.isLive ? Task { await BenchLiveLine(recorder, plan, start: start).show() } : nil
            for sender in 0..<plan.concurrency {
                group.addTask { await send(by: agent, sender, tickets) }
            }
            await group.waitForAll()
            live?.cancel()
            await live?.value
        }

        let summary = BenchSummary(
            recorder.total, nanoseconds: monotonicNanoseconds() - start, usage: ProcessUsage.now - usage,
            connections: agent.statistics.connectionsOpened)
        await agent.shutdown(grace: .zero)
        return summary
    }

    private func send(by agent: NetworkAgent, _ sender: Int, _ tickets: BenchTickets) async {
        while tickets.take() && !Task.isCancelled {
            let start = monotonicNanoseconds()
            do throws(RequestError) {
                let response = try await agent.send(request).response
                recorder.record(response, nanoseconds: monotonicNanoseconds() - start, sender: sender)
            } catch {
                // Only ctrl-C cancels; what it cut off is nobody's fault.
                if error.code == .cancelled { return }
                recorder.record(error, sender: sender)
            }
        }
    }
}

/// What every task sends.
struct BenchRequest: Request {
    var path: String
    var headers: Headers
    var jsonSchema: JSONSchema?
}

/// Hands out the requests one by one, so that all tasks are at work until the last.
final class BenchTickets: Sendable {
    private let left: Atomic<Int>
    private let end: UInt64

    init(_ plan: BenchPlan, start: UInt64) {
        left = Atomic(plan.requests ?? .max)
        end = plan.duration.map { start + UInt64(microseconds($0)) * 1000 } ?? .max
    }

    /// Whether there is one more to send.
    func take() -> Bool {
        left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 && (end == .max || monotonicNanoseconds() < end)
    }
}

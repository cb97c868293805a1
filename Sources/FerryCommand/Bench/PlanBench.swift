internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// `ferry bench --plan`: plans as the unit of load.
enum PlanBench {
    /// The rest is said by the plan.
    private static let allowed: Set = [
        "plan", "concurrency", "duration", "requests", "connections", "loops", "json", "help",
    ]

    static func run(_ path: String, _ arguments: ParsedArguments) async throws -> ExitCode {
        for option in BenchCommand.allOptions.map(\.name) where !allowed.contains(option) && arguments.has(option) {
            throw UsageError("--plan and --\(option) exclude each other")
        }
        if let operand = arguments.operands.first {
            throw UsageError("--plan and a URL ('\(operand)') exclude each other")
        }
        let load = try BenchPlan(arguments)
        let plan = try PlanReader.plan(at: path)
        raiseDescriptorLimit()
        let server = try plan.base == nil ? BenchServer() : nil
        defer { server?.stop() }
        // A variable without a value shows here, and not in each of thousands of runs.
        let start = try server.map { try PlanStart(plan, base: $0.base) } ?? PlanStart(plan)
        let (summary, wasInterrupted) = try await interruptible { await perform(start, load) }
        try load.output.write(table: summary.table, json: summary.json)
        if wasInterrupted { return .interrupted }
        return summary.exitCode
    }

    /// Ends when the count or the time is reached, or its task is cancelled.
    static func perform(_ start: PlanStart, _ load: BenchPlan) async -> PlanBenchSummary {
        var configuration = start.configuration
        configuration.loops = load.loops
        configuration.limits.transfersPerHost = load.connections
        configuration.limits.concurrentTransfers = max(load.connections, configuration.limits.concurrentTransfers)
        let agent = NetworkAgent(configuration: configuration)
        let recorder = PlanBenchRecorder(start.plan)
        let begin = monotonicNanoseconds()
        let usage = ProcessUsage.now
        let tickets = BenchTickets(start: begin, requests: load.requests, duration: load.duration)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<load.concurrency {
                group.addTask {
                    while tickets.take() && !Task.isCancelled {
                        guard let again = try? start.again() else { return }
                        let report = await PlanRun(again).perform(by: agent)
                        // Only ctrl-C cancels; what it cut off is nobody's fault, but may be the slowest of all.
                        recorder.record(report, wasCutOff: Task.isCancelled && !report.isOK)
                    }
                }
            }
        }
        let summary = PlanBenchSummary(
            name: start.plan.name, totals: recorder.totals, nanoseconds: monotonicNanoseconds() - begin,
            usage: ProcessUsage.now - usage)
        await agent.shutdown(grace: .zero)
        return summary
    }
}

/// What was seen of plans so far.
struct PlanBenchTotals: Sendable {
    struct Step: Sendable {
        let name: String
        var latencies = Histogram()
        var failed: UInt64 = 0
    }

    var latencies = Histogram()
    var failed: UInt64 = 0
    /// How long those had run that ctrl-C has cut off; neither ok nor failed.
    var unfinished = Histogram()
    /// One for each request of the plan, however often it runs in it.
    var steps: [Step]
    var firstFailure = ExitCode.success
}

/// Takes down how plans went.
private final class PlanBenchRecorder: Sendable {
    private let state: Mutex<PlanBenchTotals>
    private let places: [String: Int]

    init(_ plan: Plan) {
        var steps: [PlanBenchTotals.Step] = []
        var places: [String: Int] = [:]
        for name in plan.root.names where places[name] == nil {
            places[name] = steps.count
            steps.append(PlanBenchTotals.Step(name: name))
        }
        self.places = places
        state = Mutex(PlanBenchTotals(steps: steps))
    }

    var totals: PlanBenchTotals { state.withLock { $0 } }

    func record(_ report: PlanReport, wasCutOff: Bool) {
        state.withLock { totals in
            if wasCutOff { return totals.unfinished.record(report.nanoseconds) }
            if report.isOK { totals.latencies.record(report.nanoseconds) } else { totals.failed += 1 }
            if totals.firstFailure == .success { totals.firstFailure = report.exitCode }
            for row in report.rows {
                guard let place = places[row.name] else { continue }
                switch row.state {
                case .finished: totals.steps[place].latencies.record(row.nanoseconds)
                case .failed: totals.steps[place].failed += 1
                case .skipped, .running, .cancelled: break
                }
            }
        }
    }
}

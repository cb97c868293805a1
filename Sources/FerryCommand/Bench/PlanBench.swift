internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization

/// `ferry bench --plan`: plans as the unit of load.
enum PlanBench {
    /// The options that `--plan` can be combined with; the plan has the rest.
    private static let allowed: Set = [
        "plan", "base", "var", "concurrency", "duration", "requests", "warm-up", "connections", "loops", "engine",
        "json", "html", "fail-if", "help", "http-cache", "cache-dir", "cache",
    ]
    private static let figures = Set(BenchReport.percents.map(\.name) + ["max", "mean", "rps", "failed"])

    static func run(_ path: String, _ arguments: ParsedArguments) async throws -> ExitCode {
        for option in BenchCommand.allOptions.map(\.name) where !allowed.contains(option) && arguments.has(option) {
            throw UsageError("--plan and --\(option) cannot be combined")
        }
        if let operand = arguments.operands.first {
            throw UsageError("--plan and a URL ('\(operand)') cannot be combined")
        }
        let load = try BenchPlan(arguments)
        try checkFigures(of: load.verdict)
        let plan = try PlanReader.plan(at: path)
        let values = try arguments.pairs("var")
        let base = try arguments.base("base")
        raiseDescriptorLimit()
        let server = try plan.base == nil && base == nil ? BenchServer() : nil
        defer { server?.stop() }
        // Report a variable without a value here, not in each of thousands of runs.
        let plain =
            if let base = server?.base ?? base {
                try PlanStart(plan, values: values, base: base)
            } else {
                try PlanStart(plan, values: values)
            }
        let start = try plain.cached(arguments)
        try PlanStart.checkNames(values, of: [plan])
        try start.checkBase()
        var (summary, wasInterrupted) = try await interruptible { await perform(start, load) }
        summary.judge(by: load.verdict)
        load.output.tell(
            table: summary.table(columns: Console.tableColumns), json: summary.json, checks: summary.checks)
        let code = wasInterrupted ? ExitCode.interrupted : summary.exitCode(load.verdict)
        return load.output.save(json: summary.json, page: PlanBenchPage(summary, code).html, after: code)
    }

    private static func checkFigures(of verdict: BenchVerdict) throws(UsageError) {
        guard let other = verdict.thresholds.first(where: { !figures.contains($0.figure.name) }) else { return }
        let known = BenchThreshold.Figure.names.filter(figures.contains)
        throw UsageError(
            "--fail-if '\(other.text)': plans have \(known.joined(separator: ", ")), not \(other.figure.name)")
    }

    /// Ends when the count or the time is reached, or when its task is cancelled.
    static func perform(_ start: PlanStart, _ load: BenchPlan) async -> PlanBenchSummary {
        var configuration = start.configuration
        configuration.eventLoopCount = load.loops
        configuration.engine = load.order.configuration.engine
        let connections = load.connections(of: start.plan.root)
        configuration.limits.transfersPerHost = connections
        configuration.limits.maxConcurrentTransfers = max(connections, configuration.limits.maxConcurrentTransfers)
        let agent = NetworkAgent(configuration: configuration)
        if load.warmUp > .zero {
            await run(start, load, requests: nil, duration: load.warmUp, by: agent, PlanBenchRecorder(start.plan))
        }
        let recorder = PlanBenchRecorder(start.plan)
        let begin = monotonicNanoseconds()
        let usage = ProcessUsage.now
        let watch = watch(recorder, since: begin, duration: load.duration)
        await run(start, load, requests: load.requests, duration: load.duration, by: agent, recorder)
        let nanoseconds = monotonicNanoseconds() - begin
        let spent = ProcessUsage.now - usage
        watch.cancel()
        var timeline = await watch.value
        let totals = recorder.totals
        timeline.finish(totals.latencies, failed: totals.failed, at: Double(nanoseconds) / 1e9)
        let summary = PlanBenchSummary(
            name: start.plan.name, warmUp: load.warmUp, totals: totals, windows: timeline.windows,
            nanoseconds: nanoseconds, usage: spent)
        await agent.shutdown(grace: .zero)
        return summary
    }

    /// Samples the figures ten times a second until it is cancelled.
    private static func watch(
        _ recorder: PlanBenchRecorder, since begin: UInt64, duration: Duration?
    ) -> Task<BenchTimeline, Never> {
        Task {
            var timeline = BenchTimeline(seconds: duration.map { Double($0.microseconds) / 1e6 })
            while true {
                try? await Task.sleep(for: .milliseconds(100))
                if Task.isCancelled { return timeline }
                let totals = recorder.totals
                timeline.observe(
                    totals.latencies, failed: totals.failed, at: Double(monotonicNanoseconds() - begin) / 1e9)
            }
        }
    }

    private static func run(
        _ start: PlanStart, _ load: BenchPlan, requests: Int?, duration: Duration?, by agent: NetworkAgent,
        _ recorder: PlanBenchRecorder
    ) async {
        let tickets = BenchTickets(start: monotonicNanoseconds(), requests: requests, duration: duration)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<load.concurrency {
                // On the loops' threads: a response and the next request then share one turn of a loop.
                group.addTask(executorPreference: agent.taskExecutor) {
                    while tickets.take() && !Task.isCancelled {
                        guard let again = try? start.again() else { return }
                        let report = await PlanRun(again).perform(by: agent)
                        // Only ctrl-C cancels. An interrupted request has not failed, but may be the slowest of all.
                        recorder.record(report, wasCutOff: Task.isCancelled && !report.isOK)
                    }
                }
            }
        }
    }
}

/// Records the results of plans. Thread-safe.
final class PlanBenchRecorder: Sendable {
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
            if !report.isOK { totals.errors.record(report) }
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

extension BenchErrors {
    /// Records the errors of all failed requests, or the error that ended the run if no request failed.
    fileprivate mutating func record(_ report: PlanReport) {
        let failed = report.rows.filter { $0.state == .failed }
        for row in failed {
            if let code = row.code { record(code, row.message ?? "") }
        }
        if failed.isEmpty, let fault = report.fault { record(fault.code, fault.message) }
    }
}

/// The results of plans so far.
struct PlanBenchTotals: Sendable {
    struct Step: Sendable {
        let name: String
        var latencies = Histogram()
        var failed: UInt64 = 0
    }

    var latencies = Histogram()
    var failed: UInt64 = 0
    /// How long interrupted plans had run; they count as neither ok nor failed.
    var unfinished = Histogram()
    /// One for each request of the plan, however often the plan runs it.
    var steps: [Step]
    var firstFailure = ExitCode.success
    /// Errors of requests, and errors that ended a run without a failed request.
    var errors = BenchErrors()
}

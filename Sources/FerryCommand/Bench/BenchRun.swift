internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials
internal import Glibc

/// One measurement: the warm-up, the load, and the figures sampled during it.
struct BenchRun: Sendable {
    private let plan: BenchPlan
    private let agent: NetworkAgent
    private let bodies: BodyCheck

    /// Nanoseconds between two looks.
    private static let interval: UInt64 = 100_000_000

    init(_ plan: BenchPlan) {
        self.plan = plan
        agent = NetworkAgent(configuration: plan.order.configuration)
        bodies = BodyCheck(plan.bodies)
    }

    /// Ends when the count or the time is reached, and the requests in flight have ended, or when its task is
    /// cancelled.
    func perform() async -> BenchReport {
        BenchReport(plan, await figures())
    }

    /// The same as figures. With `begin`, the load begins at that time. `look` is called ten times a second with what
    /// was measured so far.
    func figures(
        at begin: FleetBegin? = nil, _ look: @escaping @Sendable (BenchTotals, _ seconds: Double) -> Void = { _, _ in }
    ) async -> BenchFigures {
        let display = Console.isLive ? BenchDisplay(plan) : nil
        if plan.warmUp > .zero {
            await sleep(untilMonotonic: begin?.warmUp)
            let start = begin?.warmUp ?? monotonicNanoseconds()
            let recorder = BenchRecorder(bodies, loops: plan.loops, of: plan.order.request)
            let watch = watch(recorder, since: start, display, isWarmUp: true) { _, _ in }
            await load(recorder, requests: nil, duration: plan.warmUp).run(plan.model, since: start)
            watch.cancel()
            _ = await watch.value
        }
        let figures = await measure(at: begin?.measurement, display, look)
        display?.clear()
        await agent.shutdown(grace: .zero)
        return figures
    }

    private func measure(
        at begin: UInt64?, _ display: BenchDisplay?, _ look: @escaping @Sendable (BenchTotals, Double) -> Void
    ) async -> BenchFigures {
        let recorder = BenchRecorder(bodies, loops: plan.loops, of: plan.order.request)
        // A reading takes some milliseconds.
        await sleep(untilMonotonic: begin.map { $0 - min($0, 10_000_000) })
        let date = Date.now
        let cpu = CPUShare.Reading()
        let usage = ProcessUsage.now
        await sleep(untilMonotonic: begin)
        let start = begin ?? monotonicNanoseconds()
        let late = Double(nanoseconds(since: start)) / 1e9
        let watch = watch(recorder, since: start, display, isWarmUp: false, look)
        await load(recorder, requests: plan.requests, duration: plan.duration).run(plan.model, since: start)
        var figures = BenchFigures(recorder.total, date: date)
        figures.late = late
        // A cancelled load may end before it was to begin.
        figures.seconds = Double(nanoseconds(since: start)) / 1e9
        figures.usage = ProcessUsage.now - usage
        figures.share = CPUShare.Reading().since(cpu)
        figures.connections = agent.statistics.connectionsOpened
        watch.cancel()
        var timeline = await watch.value
        timeline.finish(figures.totals.latencies, failed: figures.totals.failed, at: figures.seconds)
        figures.windows = timeline.windows
        return figures
    }

    private func load(_ recorder: BenchRecorder, requests: Int?, duration: Duration?) -> BenchLoad {
        var request = plan.order.request
        // An observer has a cost, and without a schema it would see nothing.
        if request.jsonSchema != nil { request.observers = [DecodingObserver(recorder: recorder)] }
        return BenchLoad(
            agent: agent, request: request, recorder: recorder, requests: requests, duration: duration,
            share: plan.share)
    }

    /// Samples the figures ten times a second until it is cancelled. All processes of a fleet sample at the same times.
    private func watch(
        _ recorder: BenchRecorder, since start: UInt64, _ display: BenchDisplay?, isWarmUp: Bool,
        _ look: @escaping @Sendable (BenchTotals, Double) -> Void
    ) -> Task<BenchTimeline, Never> {
        let goal = isWarmUp ? plan.warmUp : plan.duration
        return Task {
            var timeline = BenchTimeline(seconds: goal.map { Double($0.microseconds) / 1e6 })
            while true {
                await sleep(
                    untilMonotonic: start + (nanoseconds(since: start) / Self.interval + 1) * Self.interval)
                let seconds = Double(nanoseconds(since: start)) / 1e9
                if Task.isCancelled { return timeline }
                let totals = recorder.total
                look(totals, seconds)
                timeline.observe(totals.latencies, failed: totals.failed, at: seconds)
                display?.show(totals, timeline.windows, seconds: seconds, isWarmUp: isWarmUp)
            }
        }
    }
}

/// The figures of one measurement.
struct BenchFigures: Sendable {
    /// When it began.
    var date: Date
    var totals: BenchTotals
    var seconds = 0.0
    /// Seconds from the planned start to the actual one.
    var late = 0.0
    var usage = ProcessUsage.zero
    var share = CPUShare(busiestThread: 0, process: 0, machine: 0)
    var connections: UInt64 = 0
    /// The peak in kilobytes.
    var memory = ProcessUsage.peakMemory
    var windows: [BenchWindow] = []

    init(_ totals: BenchTotals, date: Date) {
        self.totals = totals
        self.date = date
    }
}

/// Nanoseconds of the monotonic clock since `start`; 0 if it is in the future.
private func nanoseconds(since start: UInt64) -> UInt64 {
    let now = monotonicNanoseconds()
    return now - min(start, now)
}

/// Waits until the monotonic clock reaches this time, or the task is cancelled.
func sleep(untilMonotonic nanoseconds: UInt64?) async {
    let now = monotonicNanoseconds()
    guard let nanoseconds, nanoseconds > now else { return }
    try? await Task.sleep(nanoseconds: nanoseconds - now)
}

/// `ferry serve` in its own process, so that its CPU time is not counted as the client's.
struct BenchServer {
    let url: String
    /// The base URL of the server, without a path.
    let base: String
    private let process: ChildProcess

    init() throws {
        process = try ChildProcess([ownExecutable, "serve", "--until-eof"])
        guard let line = process.readLine(), line.hasPrefix("http") else {
            throw InputError("the server for the measurement could not be started")
        }
        base = line
        url = line + "/hello"
    }

    func stop() {
        process.stop()
    }
}

/// `--compare`: repeats the load with another client, in its own process.
///
/// The URLSession client is in `FerryBenchmarks`: neither Ferry nor its command links FoundationNetworking.
struct BenchRival: Sendable {
    static let names = ["urlsession"]

    private let program: String

    /// `nil` without `--compare`.
    init?(_ arguments: ParsedArguments) throws {
        guard let name = arguments.last("compare") else { return nil }
        guard Self.names.contains(name) else { throw UsageError("--compare must be urlsession, not '\(name)'") }
        for option in arguments.options.map(\.name) where !Self.allowed.contains(option) {
            throw UsageError("--compare and --\(option) cannot be combined")
        }
        let beside = URL(filePath: ownExecutable).deletingLastPathComponent().appending(path: "FerryBenchmarks").path
        let isBeside = FileManager.default.isExecutableFile(atPath: beside)
        guard let program = isBeside ? beside : findProgram("FerryBenchmarks") else {
            throw InputError("--compare urlsession requires FerryBenchmarks next to ferry (make bench builds it)")
        }
        self.program = program
    }

    /// The options that both clients understand, and those of the output. The other client does not look at bodies, so
    /// there is none to compare with a digest.
    private static let allowed: Set = [
        "compare", "concurrency", "duration", "requests", "warm-up", "connections", "loops", "engine", "request",
        "header",
        "any-body", "json", "html", "baseline", "fail-if",
    ]

    /// `nil` if its task was cancelled, which also ends the other process.
    func perform(_ plan: BenchPlan) async throws -> RivalReport? {
        let request = plan.order.request
        let order = RivalOrder(
            method: request.method.rawValue, url: request.path,
            headers: request.headers.fields.flatMap { [$0.name, $0.value] }, concurrency: plan.concurrency,
            connections: plan.connections, requests: plan.requests,
            seconds: plan.duration.map { Double($0.microseconds) / 1e6 },
            warmUp: Double(plan.warmUp.microseconds) / 1e6)
        let text = String(decoding: try JSONEncoder().encode(order), as: UTF8.self)
        let end = try await Self.end(of: ChildProcess([program, "worker", "load-urlSession", text]))
        if Task.isCancelled { return nil }
        guard end.code == 0, var report = try? JSONDecoder().decode(RivalReport.self, from: Data(end.output.utf8))
        else {
            throw InputError("--compare urlsession: FerryBenchmarks ended with \(end.code)")
        }
        // Count the rate like Ferry's own.
        report.rps = report.seconds > 0 ? rounded(Double(report.ok) / report.seconds, 1) : 0
        return report
    }

    private static func end(of process: ChildProcess) async -> ChildProcess.End {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: process.finish()) }
            }
        } onCancel: {
            process.signal(SIGTERM)
        }
    }
}

internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// The report of a load, which `--json` writes and `--baseline` reads. Tables and pages are made from it alone.
///
/// `Schemas/bench-report.schema.json` describes it. Times are in microseconds unless their name says otherwise.
struct BenchReport: Codable, Sendable, Equatable {
    /// The model of the load.
    struct Model: Codable, Sendable, Equatable {
        /// `closed` or `open`.
        var kind: String
        var concurrency: Int?
        /// Requests per second, for `open`.
        var rate: Double?
        var title: String
    }

    /// A window of the measured time.
    struct Point: Codable, Sendable, Equatable {
        /// The end of the window, in seconds.
        var at: Double
        var rps: Double
        var failed: UInt64
        var p50: Double
        var p99: Double
        var max: Double
    }

    /// The number of responses with latencies in a range of microseconds.
    struct Bar: Codable, Sendable, Equatable {
        var from: Double
        var to: Double
        var count: UInt64
    }

    /// Failures by their exit code; requests that were not sent count as transfers.
    struct FailedBy: Codable, Sendable, Equatable {
        var transfer: UInt64 = 0
        /// Responses whose status was not accepted.
        var status: UInt64 = 0
        /// Complete responses that do not match the schema.
        var body: UInt64 = 0
    }

    /// The load of the client and its machine.
    struct Generator: Codable, Sendable, Equatable {
        /// CPU use from 0 to 1: of one core, of all cores, and of all cores by all processes.
        var busiestThread: Double
        var process: Double
        var machine: Double
        /// How late event loops were for events on their clock.
        var loopLag: [String: Double]
        /// How late requests of the open model were sent; `nil` for the closed one.
        var lateness: [String: Double]?

        private enum CodingKeys: String, CodingKey {
            case process, machine
            case busiestThread = "busiest_thread"
            case loopLag = "loop_lag_us"
            case lateness = "lateness_us"
        }
    }

    /// Requests without a response when the load was interrupted.
    struct Unanswered: Codable, Sendable, Equatable {
        var count: UInt64
        /// How long the oldest of them had waited.
        var oldest: Double

        private enum CodingKeys: String, CodingKey {
            case count
            case oldest = "oldest_us"
        }
    }

    /// Increased when a member is removed or changes its meaning.
    static let version = 2

    var version = Self.version
    var started: String
    var method: String
    var url: String
    var model: Model
    var warmUp: Double
    var requests: UInt64
    var ok: UInt64
    var failed: UInt64
    var unsent: UInt64
    var failedBy = FailedBy()
    /// Failures by error code with details, like `timeout(connect)`.
    var errors: [String: UInt64]
    /// The message of the first error of each code.
    var errorMessages: [String: String] = [:]
    var statuses: [String: UInt64]
    /// The selected engine, `automatic` or `libcurl`. Reports of earlier versions have neither this nor the next.
    var engine: String?
    /// Accepted responses by engine, `http1` or `libcurl`.
    var engines: [String: UInt64]?
    var seconds: Double
    /// Accepted responses per second.
    var rps: Double
    /// Requests per second including failures, of which there may be many if a server is down.
    var attemptsPerSecond: Double
    /// The latencies: `mean`, `max` and the percentiles of ``percents``.
    var latency: [String: Double]
    var histogram: [Bar]
    /// `count`, `mean`, `p50`, `p90`, `p99` and `max` by the name of the phase.
    var phases: [String: [String: Double]]
    var series: [Point]
    var cpu: [String: Double]
    var memory: Int
    var connections: UInt64
    var bytes: UInt64
    var wrongBodies: UInt64
    /// `nil` if every request has its result.
    var unanswered: Unanswered?
    var generator: Generator
    /// The results of `--fail-if`; `nil` without conditions.
    var checks: [BenchCheck]?
    var warnings: [String] = []
    /// The figures of another client under the same load; `nil` without `--compare`.
    var comparison: RivalReport?
    /// The workers that shared the load; `nil` without `--fleet`.
    var fleet: [FleetMember]?

    private enum CodingKeys: String, CodingKey {
        case version, started, method, url, model, requests, ok, failed, unsent, errors, statuses, engine, engines
        case seconds, rps
        case series, connections, bytes, unanswered, generator, checks, warnings, comparison, fleet
        case failedBy = "failed_by"
        case errorMessages = "error_messages"
        case attemptsPerSecond = "attempts_per_second"
        case warmUp = "warm_up_s"
        case latency = "latency_us"
        case histogram = "latency_histogram_us"
        case phases = "phases_us"
        case cpu = "cpu_us_per_request"
        case memory = "max_rss_kb"
        case wrongBodies = "wrong_bytes"
    }

    static let percents: [(name: String, percent: Double)] = [
        ("p50", 50), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99), ("p99.9", 99.9),
    ]

    /// Whether the rates of attempts and of accepted responses differ.
    var hasOtherAttempts: Bool { ok < requests }

    /// The report as one line of JSON with sorted members.
    var json: String { jsonLine(self) }
}

extension BenchReport {
    /// The bars of the histogram, as wide as they are drawn.
    static func bars(_ latencies: Histogram) -> [Bar] {
        latencies.bars(perDoubling: 8).map { bar in
            Bar(from: micro(bar.lower), to: micro(bar.upper), count: bar.count)
        }
    }

    init(_ plan: BenchPlan, _ figures: BenchFigures) {
        let totals = figures.totals
        let count = totals.ok + totals.failed
        let share = Double(max(1, count + totals.unanswered.count))
        started = figures.date.formatted(.iso8601)
        method = plan.order.request.method.rawValue
        // Redacted as in a log, because reports are shared and baselines kept.
        url = LogEntry(.info, "", url: plan.order.request.path).url ?? ""
        if let archive = plan.archive { (method, url) = ("HAR", archive.path) }
        model = Model(plan)
        warmUp = Double(plan.warmUp.microseconds) / 1e6
        requests = count
        ok = totals.ok
        failed = totals.failed
        unsent = totals.unsent
        let (byStatus, byBody) = (totals.errors.byStatus, totals.errors.byBody)
        failedBy = FailedBy(transfer: failed - byStatus - byBody, status: byStatus, body: byBody)
        errors = totals.errors.named
        errorMessages = totals.errors.samples
        statuses = Dictionary(uniqueKeysWithValues: totals.statuses.map { (String($0.key), $0.value) })
        engine = plan.order.configuration.engine.word
        engines = totals.engines.named
        seconds = rounded(figures.seconds, 6)
        rps = rounded(figures.seconds > 0 ? Double(totals.ok) / figures.seconds : 0, 1)
        attemptsPerSecond = rounded(figures.seconds > 0 ? Double(count) / figures.seconds : 0, 1)
        let latencies = totals.latencies(of: plan.model)
        latency = latencies.percentiles(Self.percents)
        histogram = Self.bars(latencies)
        phases = [:]
        for phase in BenchPhases.Phase.allCases where totals.phases[phase].count > 0 {
            let times = totals.phases[phase]
            phases[phase.rawValue] = times.percentiles([("p50", 50), ("p90", 90), ("p99", 99)])
            phases[phase.rawValue]?["count"] = Double(times.count)
        }
        series = figures.windows.map(Point.init)
        cpu = ["user": rounded(figures.usage.user / share, 2), "sys": rounded(figures.usage.system / share, 2)]
        memory = figures.memory
        connections = figures.connections
        bytes = totals.bytes
        wrongBodies = totals.wrongBodies
        if totals.unanswered.count > 0 {
            unanswered = Unanswered(count: totals.unanswered.count, oldest: micro(totals.unanswered.maximum))
        }
        generator = Generator(
            busiestThread: rounded(figures.share.busiestThread, 3), process: rounded(figures.share.process, 3),
            machine: rounded(figures.share.machine, 3),
            loopLag: totals.lag.percentiles([("p50", 50), ("p99", 99)]),
            lateness: totals.lateness.count == 0 ? nil : totals.lateness.percentiles([("p50", 50), ("p99", 99)]))
        warnings =
            Self.warnings(generator, seconds: seconds, ok: ok, unsent: unsent) + Self.warnings(totals, plan.model)
    }
}

extension BenchReport.Model {
    fileprivate init(_ plan: BenchPlan) {
        if plan.archive?.isPaced == true {
            self.init(kind: "open", title: plan.title)
            return
        }
        switch plan.model {
        case .closed(let concurrency): self.init(kind: "closed", concurrency: concurrency, title: plan.title)
        case .open(let rate): self.init(kind: "open", rate: rate, title: plan.title)
        }
    }
}

extension BenchReport.Point {
    init(_ window: BenchWindow) {
        self.init(
            at: rounded(window.end, 3), rps: rounded(window.rate, 1), failed: window.failed,
            p50: micro(window.latencies.percentile(50)), p99: micro(window.latencies.percentile(99)),
            max: micro(window.latencies.maximum))
    }
}

extension BenchReport {
    /// Warnings that the figures say more about the client than about the server.
    ///
    /// There is no warning about CPU use if the run was too short to measure it, or if the server refused requests as
    /// fast as the client could send them.
    static func warnings(_ generator: Generator, seconds: Double, ok: UInt64, unsent: UInt64) -> [String] {
        var warnings: [String] = []
        let saysShares = seconds >= shortest && ok > 0
        if saysShares, generator.process > 0.9 {
            warnings.append("the generator is the limit: it used \(percent(generator.process)) of all cores")
        } else if saysShares, generator.busiestThread > 0.9 {
            warnings.append(
                "the generator is the limit: one of its threads was busy \(percent(generator.busiestThread)) of the time "
                    + "(--loops gives it more)")
        } else if saysShares, generator.machine > 0.95 {
            warnings.append(
                "the machine is the limit: \(percent(generator.machine)) of all cores were in use, "
                    + "\(percent(generator.process)) by the generator")
        }
        if ok > 0, let lag = generator.loopLag["p99"], lag > lagLimit {
            warnings.append("the generator is the limit: its event loop was late by \(text(lag)) (p99)")
        }
        if let late = generator.lateness?["p99"], late > lagLimit {
            warnings.append("requests were sent \(text(late)) after their time (p99); latencies include the delay")
        }
        if unsent > 0 {
            warnings.append("\(grouped(unsent)) requests were not sent: 100,000 others were waiting for a response")
        }
        return warnings
    }

    /// A warning about interrupted requests, if they matter: some fast requests are always in flight.
    static func warnings(_ totals: BenchTotals, _ model: BenchPlan.Model) -> [String] {
        let (waited, known) = (totals.unanswered, totals.latencies.maximum)
        if waited.count == 0 || waited.maximum <= known { return [] }
        var figures = "latencies do not include them"
        if case .open = model { figures = "latencies include the time that they had waited" }
        return [
            "\(grouped(waited.count)) requests had no response when the load was interrupted, "
                + "the oldest for \(durationText(nanoseconds: waited.maximum)); \(figures)"
        ]
    }

    /// In seconds. The system counts CPU use in hundredths of a second.
    private static let shortest = 0.95

    /// In microseconds. People notice a hundredth of a second.
    private static let lagLimit = 10_000.0

    private static func percent(_ share: Double) -> String { fixed(share * 100, 0) + " %" }

    private static func text(_ microseconds: Double) -> String {
        durationText(nanoseconds: UInt64(microseconds * 1000))
    }
}

extension Histogram {
    /// The percentiles in microseconds by name, with `mean` and `max`.
    func percentiles(_ percents: [(name: String, percent: Double)]) -> [String: Double] {
        var values = ["mean": rounded(mean / 1000, 1), "max": micro(maximum)]
        for (name, percent) in percents { values[name] = micro(percentile(percent)) }
        return values
    }
}

/// Nanoseconds as microseconds with one decimal.
func micro(_ nanoseconds: UInt64) -> Double { rounded(Double(nanoseconds) / 1000, 1) }

/// A value rounded to a number of decimals.
func rounded(_ value: Double, _ digits: Int) -> Double { Double(fixed(value, digits)) ?? 0 }

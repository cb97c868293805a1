internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// The figures at the end, as `--json` writes them and `--baseline` reads them; tables and pages are made of it alone.
///
/// `Schemas/bench-report.schema.json` describes it. Times are microseconds unless their name says otherwise.
struct BenchReport: Codable, Sendable, Equatable {
    /// How it was decided when to send.
    struct Model: Codable, Sendable, Equatable {
        /// `closed` or `open`.
        var kind: String
        var concurrency: Int?
        /// A second.
        var rate: Double?
        var title: String
    }

    /// A piece of the measured time.
    struct Point: Codable, Sendable, Equatable {
        /// Seconds, its end.
        var at: Double
        var rps: Double
        var failed: UInt64
        var p50: Double
        var p99: Double
        var max: Double
    }

    /// Answers that took from and up to so many microseconds.
    struct Bar: Codable, Sendable, Equatable {
        var from: Double
        var to: Double
        var count: UInt64
    }

    /// Failures by what they are for the exit code; those that were not sent are among the transfers.
    struct FailedBy: Codable, Sendable, Equatable {
        var transfer: UInt64 = 0
        /// Answers whose status is not accepted.
        var status: UInt64 = 0
        /// Whole answers that do not fit the schema.
        var body: UInt64 = 0
    }

    /// How busy the client was.
    struct Generator: Codable, Sendable, Equatable {
        /// From 0 to 1: of one core, of all, and of all by all processes.
        var busiestThread: Double
        var process: Double
        var machine: Double
        /// How late a loop is to what is due on its clock.
        var loopLag: [String: Double]
        /// How late requests of the open model were sent.
        var lateness: [String: Double]?

        private enum CodingKeys: String, CodingKey {
            case process, machine
            case busiestThread = "busiest_thread"
            case loopLag = "loop_lag_us"
            case lateness = "lateness_us"
        }
    }

    /// What had no answer when the load was cut off.
    struct Unanswered: Codable, Sendable, Equatable {
        var count: UInt64
        /// How long the first of them had waited.
        var oldest: Double

        private enum CodingKeys: String, CodingKey {
            case count
            case oldest = "oldest_us"
        }
    }

    /// Goes up when a member goes or changes its meaning.
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
    /// By the code with its finer cause, like `timeout(connect)`.
    var errors: [String: UInt64]
    /// What the first of each said.
    var errorMessages: [String: String] = [:]
    var statuses: [String: UInt64]
    /// What was asked for: `automatic` or `libcurl`. `nil` in reports of earlier versions, as the next.
    var engine: String?
    /// Accepted answers by what carried them, `http1` or `libcurl`.
    var engines: [String: UInt64]?
    var seconds: Double
    /// Accepted answers a second.
    var rps: Double
    /// Requests a second, those that failed included: of a server that is down there may be many.
    var attemptsPerSecond: Double
    /// `mean`, `max` and the percentiles of ``percents``.
    var latency: [String: Double]
    var histogram: [Bar]
    /// By the name of the phase, `count`, `mean`, `p50`, `p90`, `p99` and `max`.
    var phases: [String: [String: Double]]
    var series: [Point]
    var cpu: [String: Double]
    var memory: Int
    var connections: UInt64
    var bytes: UInt64
    var wrongBodies: UInt64
    /// `nil` when all was answered.
    var unanswered: Unanswered?
    var generator: Generator
    /// What came of `--fail-if`; `nil` without one.
    var checks: [BenchCheck]?
    var warnings: [String] = []
    /// What another client made of the same load; `nil` when none was asked.
    var comparison: RivalReport?
    /// Who has put the load on it together; `nil` without `--fleet`.
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

    /// Whether what was sent and what was accepted are worth telling apart.
    var hasOtherAttempts: Bool { ok < requests }

    /// One line, fields in alphabetical order.
    var json: String { jsonLine(self) }
}

extension BenchReport {
    /// As wide as they are drawn.
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
        // As a log has it: reports are shown around, and baselines kept.
        url = LogEntry(.info, "", url: plan.order.request.path).url ?? ""
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
    /// What makes the figures say more of the client than of the server.
    ///
    /// Nothing is said of shares of a run that was too short to take one, nor of a client that was refused as fast as
    /// it could ask.
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
            warnings.append("the generator is the limit: its loop was late by \(text(lag)) (p99)")
        }
        if let late = generator.lateness?["p99"], late > lagLimit {
            warnings.append("requests were sent \(text(late)) after their time (p99); latencies count it in")
        }
        if unsent > 0 {
            warnings.append("\(grouped(unsent)) requests were given up: 100,000 others had no answer yet")
        }
        return warnings
    }

    /// What is missing from the figures because the load was cut off, where that may matter: of answers that are not
    /// slow a few are always on their way.
    static func warnings(_ totals: BenchTotals, _ model: BenchPlan.Model) -> [String] {
        let (waited, known) = (totals.unanswered, totals.latencies.maximum)
        if waited.count == 0 || waited.maximum <= known { return [] }
        var figures = "latencies are without them"
        if case .open = model { figures = "latencies count what they had waited" }
        return [
            "\(grouped(waited.count)) requests had no answer when the load was cut off, "
                + "the oldest for \(durationText(nanoseconds: waited.maximum)); \(figures)"
        ]
    }

    /// Seconds: the system counts the use of its cores in hundredths of one.
    private static let shortest = 0.95

    /// Microseconds: a hundredth of a second is what people notice.
    private static let lagLimit = 10_000.0

    private static func percent(_ share: Double) -> String { fixed(share * 100, 0) + " %" }

    private static func text(_ microseconds: Double) -> String {
        durationText(nanoseconds: UInt64(microseconds * 1000))
    }
}

extension Histogram {
    /// Microseconds by name, with `mean` and `max`.
    func percentiles(_ percents: [(name: String, percent: Double)]) -> [String: Double] {
        var values = ["mean": rounded(mean / 1000, 1), "max": micro(maximum)]
        for (name, percent) in percents { values[name] = micro(percentile(percent)) }
        return values
    }
}

/// Microseconds with one digit behind the point.
func micro(_ nanoseconds: UInt64) -> Double { rounded(Double(nanoseconds) / 1000, 1) }

/// With so many digits behind the point.
func rounded(_ value: Double, _ digits: Int) -> Double { Double(fixed(value, digits)) ?? 0 }

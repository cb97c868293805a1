import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// A report without any measurements.
func madeReport(
    p99: Double = 10_000, rps: Double = 1000, requests: UInt64 = 1000, failed: UInt64 = 0, kind: String = "closed"
) -> BenchReport {
    var report = BenchReport(
        started: "2026-11-21T04:00:00Z", method: "GET", url: "http://h/?a=<b>&c=\"d\"",
        model: .init(kind: kind, concurrency: 64, title: "\(kind), 64 at once"), warmUp: 1, requests: requests,
        ok: requests - failed, failed: failed, unsent: 0, failedBy: .init(transfer: failed),
        errors: failed > 0 ? ["timeout(read)": failed] : [:], statuses: ["200": requests - failed], seconds: 10,
        rps: rps, attemptsPerSecond: Double(requests) / 10, latency: ["p99": p99, "p50": 1000, "max": 50_000],
        histogram: [
            .init(from: 500, to: 1000, count: 400), .init(from: 1000, to: 1100, count: 0),
            .init(from: 1100, to: 2000, count: 600),
        ],
        phases: ["queue": ["count": 1000, "mean": 10], "first_byte": ["count": 1000, "mean": 900]],
        series: (1...10).map { second in
            .init(at: Double(second), rps: rps, failed: failed / 10, p50: 1000, p99: p99, max: 50_000)
        },
        cpu: ["user": 10, "sys": 5], memory: 32 * 1024, connections: 64, bytes: 12_000, wrongBodies: 0,
        generator: .init(busiestThread: 0.5, process: 0.4, machine: 0.9, loopLag: ["p99": 100], lateness: nil))
    for (name, _) in BenchReport.percents where report.latency[name] == nil { report.latency[name] = 5000 }
    report.latency["mean"] = 1500
    return report
}

/// Its page, if no condition is given.
func madePage(_ report: BenchReport, _ conditions: String..., mustBeRight: Bool = true) -> String {
    var report = report
    let verdict = BenchVerdict(conditions.compactMap { try? BenchThreshold($0) }, baseline: nil)
    verdict.judge(&report)
    return BenchPage(report, BenchRuling(report, verdict, mustBeRight: mustBeRight)).html
}

extension BenchThreshold {
    /// The reported errors.
    fileprivate func complaint(_ report: BenchReport, baseline: BenchReport? = nil) -> String? {
        check(report, baseline: baseline)?.complaint
    }
}

@Suite struct BenchThresholdTests {
    @Test(arguments: [
        ("p99>9ms", true), ("p99>10ms", false), ("p99>=10ms", true), ("p99 >= 0.01 s", true), ("p99<10000us", false),
        ("p99<=10000µs", true), ("rps<1001", true), ("rps<1000", false), ("failed>0", true), ("failed>1%", false),
        ("failed>=1%", true), ("wrong>0", false), ("cpu>14.9us", true), ("memory>32MB", false), ("memory>=32MB", true),
        ("memory<1GB", true), ("max>49.9ms", true), ("connections>63", true), ("requests<1000", false),
        ("mean>1ms", true), ("p99.9>1ms", true),
    ])
    func conditionsHoldOrNot(_ text: String, holds: Bool) throws {
        let report = madeReport(failed: 10)
        #expect((try BenchThreshold(text).complaint(report) != nil) == holds)
    }

    @Test(arguments: [
        (10_999.0, false), (11_000.5, true), (5_000, false),
    ])
    func changesAreAgainstTheBaseline(_ p99: Double, holds: Bool) throws {
        let threshold = try BenchThreshold("p99>+10%")
        #expect(threshold.needsBaseline)
        #expect((threshold.complaint(madeReport(p99: p99), baseline: madeReport()) != nil) == holds)
    }

    @Test func aFallIsAChangeToo() throws {
        let threshold = try BenchThreshold("rps<-5%")
        #expect(threshold.complaint(madeReport(rps: 951), baseline: madeReport()) == nil)
        let verdict = threshold.complaint(madeReport(rps: 940), baseline: madeReport())
        #expect(verdict == "rps<-5%: rps is 940, the baseline has 1,000")
    }

    @Test(arguments: [
        "", "p99", "p98>1ms", "p99>1", "p99>ms", "p99>1%", "p99>+10ms", "p99>+x%", "p99>nan%", "p99=1ms", "rps<1ms",
        "failed>", ">1", "memory>5", "p99>infs", "p99>1 minute",
    ])
    func whatIsNotUnderstoodIsWrongUsage(_ text: String) async throws {
        #expect(throws: UsageError.self) { try BenchThreshold(text) }
        #expect(await Main.run(["bench", "http://127.0.0.1:1/", "-n", "1", "--fail-if", text]) == .usage)
    }

    @Test func aBaselineMayHoldWhatNoClockShows() throws {
        let threshold = try BenchThreshold("p99<+10%")
        let verdict = threshold.complaint(madeReport(), baseline: madeReport(p99: 1e30))
        #expect(verdict?.contains("the baseline has 18446744073.71 s") == true)
        let rate = try BenchThreshold("rps<+10%")
        #expect(rate.complaint(madeReport(), baseline: madeReport(rps: 1e30)) != nil)
        #expect([-1, 0.9, 2.5, .nan, .infinity].map(wholeNumber) == [0, 0, 2, 0, .max])
    }

    @Test func aConditionOnFailuresDecidesInPlaceOfThem() throws {
        let (fewFail, noneFails) = (madeReport(failed: 10), madeReport())
        func code(_ report: BenchReport, _ conditions: String..., mustBeRight: Bool = true) throws -> ExitCode {
            let verdict = BenchVerdict(try conditions.map { try BenchThreshold($0) }, baseline: nil)
            var report = report
            verdict.judge(&report)
            #expect((report.checks ?? []).allSatisfy { $0.verdict == .ok })
            return BenchRuling(report, verdict, mustBeRight: mustBeRight).exitCode
        }
        #expect(try code(noneFails) == .success && code(fewFail) == .transferFailed)
        #expect(try code(fewFail, "failed>1%") == .success && code(fewFail, "failed>10") == .success)
        #expect(try code(fewFail, "p99>1s") == .transferFailed && code(fewFail, "wrong>1%") == .transferFailed)
        var wrong = madeReport()
        wrong.wrongBodies = 1
        #expect(try code(wrong) == .validationFailed && code(wrong, mustBeRight: false) == .success)
        #expect(try code(wrong, "wrong>0.1%") == .success && code(wrong, "failed>1%") == .validationFailed)
    }

    @Test func kindsOfFailuresDecideTheExitCode() {
        func code(_ failedBy: BenchReport.FailedBy) -> ExitCode {
            var report = madeReport(failed: 10)
            report.failedBy = failedBy
            return BenchRuling(report, BenchVerdict([], baseline: nil), mustBeRight: true).exitCode
        }
        #expect(code(.init(transfer: 10)) == .transferFailed && code(.init(status: 10)) == .statusNotAccepted)
        #expect(code(.init(body: 10)) == .validationFailed && code(.init(status: 5, body: 5)) == .transferFailed)
    }

    @Test func conditionsThatAreMetLeaveATraceToo() throws {
        var report = madeReport(rps: 940, failed: 10)
        let verdict = BenchVerdict(
            try ["p99>250ms", "rps<-5%", "failed>1%"].map { try BenchThreshold($0) }, baseline: madeReport())
        verdict.judge(&report)
        #expect(
            report.checks == [
                .init(condition: "p99>250ms", figure: "p99", value: 10_000, limit: 250_000, verdict: .ok),
                .init(
                    condition: "rps<-5%", figure: "rps", value: 940, limit: 950, baseline: 1000, verdict: .failed),
                .init(condition: "failed>1%", figure: "failed", value: 10, limit: 10, verdict: .ok),
            ])
        let lines = """
              check        ok      p99>250ms  p99 is 10.0 ms, limit 250 ms
              check        failed  rps<-5%    rps is 940, limit 950, baseline 1,000
              check        ok      failed>1%  failed is 10, limit 10

            """
        #expect(BenchTable(report, columns: 100).text.contains(lines), "\(BenchTable(report, columns: 100).text)")
        let page = BenchPage(report, BenchRuling(report, verdict, mustBeRight: true)).html
        #expect(page.contains("<td>p99&gt;250ms</td><td>p99 is 10.0 ms, limit 250 ms</td><td>ok</td>"))
        #expect(!BenchTable(madeReport()).text.contains("check "))
        #expect(!madePage(madeReport()).contains("<h2>Conditions</h2>"))
    }

    @Test func aLimitBeyondAllNumbersIsStillJSON() throws {
        var report = madeReport()
        BenchVerdict([try BenchThreshold("p99>1e308s")], baseline: nil).judge(&report)
        #expect(report.json.contains(#""condition":"p99>1e308s""#))
    }

    @Test func attemptsAreNoThroughput() {
        var report = madeReport(rps: 0, requests: 400, failed: 400)
        report.ok = 0
        #expect(
            BenchTable(report).text.contains("0 accepted responses per second, 1.20 kB/s; 40 attempts per"))
        #expect(madePage(report).contains("ok per second</small>"))
        #expect(madePage(report).contains("<small>40 attempts per second</small>"))
        #expect(BenchTable(madeReport()).text.contains("1,000 requests per second, 1.20 kB/s\n"))
    }

    @Test func wrongBodiesAreOfTheBodies() {
        var report = madeReport()
        report.wrongBodies = 19
        #expect(BenchTable(report).text.contains("12.0 kB, 19 of 1,000 bodies wrong\n"))
    }

    @Test func theFiguresAreNamedWhenOneIsUnknown() {
        do {
            _ = try BenchThreshold("p98>1ms")
            Issue.record("it was accepted")
        } catch {
            #expect(error.message.contains("p50, p75, p90") && error.message.contains("memory, connections"))
        }
    }

    @Test func aChangeNeedsABaseline() async throws {
        #expect(await Main.run(["bench", "http://127.0.0.1:1/", "--fail-if", "p99>+1%"]) == .usage)
        let file = try TemporaryFile(Array("{}".utf8))
        #expect(await Main.run(["bench", "http://h/", "--baseline", file.path]) == .badInput)
        #expect(await Main.run(["bench", "http://h/", "--baseline", "/nowhere"]) == .badInput)
    }

    private func run(_ line: [String], baseline: BenchReport) async throws -> ExitCode {
        let file = try TemporaryFile(Array(baseline.json.utf8))
        return await Main.run(["bench", "http://127.0.0.1:1/", "-n", "1", "--baseline", file.path] + line)
    }

    @Test func aBaselineOfAnotherVersionIsNone() async throws {
        var old = madeReport()
        old.version = 1
        #expect(try await run([], baseline: old) == .badInput)
        let file = try TemporaryFile(Array(old.json.utf8))
        #expect(throws: InputError("\(file.path): has version 1; this ferry reads version 2")) {
            try BenchBaseline.report(at: file.path)
        }
    }

    @Test func aChangeOfNothingIsNone() async throws {
        #expect(try await run(["--fail-if", "failed>+10%"], baseline: madeReport()) == .usage)
        #expect(try await run(["--fail-if", "p99>+10%"], baseline: madeReport(p99: 0)) == .usage)
        #expect(try await run(["--fail-if", "p99>+10%"], baseline: madeReport()) == .transferFailed)
    }

    @Test func aBaselineOfAnotherLoadIsAWarning() {
        var (report, baseline) = (madeReport(), madeReport())
        #expect(BenchBaseline.warning(report, baseline) == nil)
        baseline.url = "https://other:8080/?b=***"
        #expect(BenchBaseline.warning(report, baseline) == nil, "the server may be another one")
        baseline.url = "http://h/orders?b=***"
        baseline.method = "POST"
        baseline.model = .init(kind: "open", rate: 500, title: "open")
        let words = "the baseline has another load: POST, not GET; /orders, not /; 500.0 per second, not 64 at once"
        #expect(BenchBaseline.warning(report, baseline) == words)
        BenchVerdict([], baseline: baseline).judge(&report)
        #expect(report.warnings == [words] && BenchTable(report, columns: 200).text.contains(words))
        let lines = BenchTable(report).text.split(separator: "\n").suffix(2)
        #expect(lines.first?.hasPrefix("  warning      the baseline has another load: ") == true)
        #expect(lines.last?.hasPrefix(blanks(15)) == true && lines.allSatisfy { $0.count < 80 }, "\(lines)")
    }

    @Test func complaintsAreToldBeforeAFileFails() throws {
        // It only takes its name.
        let path = "/dev/full"
        let end = try FerryProgram.run("bench", "-n", "5", "--html", path, "--fail-if", "requests>=5")
        #expect(end.code == 4 && end.output.contains("ferry bench: requests>=5: requests is 5\n"), "\(end)")
        let text = "ferry bench: cannot write \(path): No space left on device\n"
        #expect(end.output.hasSuffix(text))
        // The file decides only if nothing else failed.
        let good = try FerryProgram.run("bench", "-n", "5", "--json=\(path)")
        #expect(good.code == 3 && good.output.hasSuffix(text), "\(good)")
    }

    @Test func aConditionThatHoldsEndsWithFour() async throws {
        let file = try TemporaryFile([])
        try await withLoopbackServer { server in
            let line = ["bench", server.baseURL + "/hello", "-n", "20", "-c", "2"]
            #expect(await Main.run(line + ["--json=\(file.path)", "--fail-if", "failed>0"]) == .success)
            let next = line + ["--baseline", file.path, "--fail-if", "rps>+1000000%"]
            #expect(await Main.run(next) == .success)
            #expect(await Main.run(next + ["--fail-if", "requests>=20"]) == .validationFailed)
            #expect(await Main.run(next + ["--fail-if", "p50>-99.999%"]) == .validationFailed)
        }
    }
}

@Suite struct BenchPageTests {
    @Test func thePageNeedsNothingElse() {
        let page = madePage(madeReport(failed: 20))
        for word in ["<script", "<link", "src=", "@import", "url("] { #expect(!page.contains(word), "\(word)") }
        #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
    }

    @Test func theBadgeIsTheExitCodes() {
        let (good, bad) = ("<b class=\"good\">ok</b>", "<b class=\"bad\">failed</b>")
        let badTile = "<div class=\"bad\">"
        #expect(madePage(madeReport()).contains(good))
        let fails = madePage(madeReport(failed: 10))
        #expect(fails.contains(bad) && fails.contains(badTile))
        let allowed = madePage(madeReport(failed: 10), "failed>1%")
        #expect(allowed.contains(good) && !allowed.contains(badTile))
        let slow = madePage(madeReport(failed: 10), "failed>1%", "p99>1ms")
        #expect(slow.contains(bad) && !slow.contains(badTile))
        var wrong = madeReport()
        wrong.wrongBodies = 3
        let wrongPage = madePage(wrong)
        #expect(wrongPage.contains(bad) && wrongPage.contains(badTile))
        let unknown = madePage(wrong, mustBeRight: false)
        #expect(unknown.contains(good) && !unknown.contains(badTile))
        let verdict = BenchVerdict([], baseline: nil)
        let ruling = BenchRuling(madeReport(), verdict, mustBeRight: true, wasInterrupted: true)
        #expect(ruling.exitCode == .interrupted)
        #expect(BenchPage(madeReport(), ruling).html.contains("<b class=\"bad\">interrupted</b>"))
    }

    @Test func whatComesFromOutsideIsEscaped() {
        let page = madePage(madeReport(), "p99>9ms")
        #expect(page.contains("http://h/?a=&lt;b&gt;&amp;c=&quot;d&quot;"))
        #expect(page.contains("p99&gt;9ms: p99 is 10.0 ms</p>") && !page.contains("<b>&c"))
    }

    @Test func chartsAreThereWithTheirFigures() {
        let page = madePage(madeReport(failed: 20))
        #expect(page.components(separatedBy: "<svg").count == 7, "each for wide and for narrow windows")
        #expect(page.components(separatedBy: "class=\"bar\"").count == 5)
        #expect(page.contains("400, 40.00 %") && page.contains("2 failed until"))
        #expect(!page.contains("nan") && !page.contains("inf\""))
    }

    @Test func theModelTellsWhatLatencyIs() {
        #expect(madePage(madeReport(kind: "open")).contains("(no coordinated omission)"))
        #expect(madePage(madeReport()).contains("While responses were slow, fewer requests were sent"))
    }

    @Test func aLoadWithoutAnswersHasAPageToo() {
        var report = madeReport(requests: 10, failed: 10)
        (report.histogram, report.series, report.phases) = ([], [], [:])
        report.latency = report.latency.mapValues { _ in 0 }
        let page = madePage(report)
        #expect(page.contains("<p>There was no response: 10 transfers failed.</p>") && page.contains(">failed</b>"))
        #expect(page.contains("<strong>–</strong>") && !page.contains(">0 µs<"))
        #expect(!page.contains("Where the time went") && !page.contains("<td data-head=\"p50\">"), "what is empty")
        let row = BenchTable(report).text.split(separator: "\n").first { $0.hasPrefix("  latency ") }
        #expect(row?.split(separator: " ").dropFirst().allSatisfy { $0 == "–" } == true)
    }

    @Test func refusedResponsesAreReportedByStatus() {
        var report = madeReport(requests: 34_997, failed: 34_997)
        (report.histogram, report.series, report.phases) = ([], [], [:])
        (report.statuses, report.failedBy) = (["500": 34_996], .init(transfer: 1, status: 34_996))
        let page = madePage(report)
        #expect(page.contains("<p>No response was accepted: 34,996 of status 500, 1 transfer failed.</p>"))
        #expect(!page.contains("There was no response"))
        #expect(!page.contains("<p class=\"legend\">"), "a legend without a chart explains nothing")
    }

    @Test func aNarrowChartNamesTheImportantPercentiles() {
        var latency = madeReport(p99: 2200).latency
        (latency["p90"], latency["p99.9"]) = (1500, 40_000)
        let bars = [BenchReport.Bar(from: 100, to: 50_000, count: 1000)]
        let figures = BenchCharts.Figures(histogram: bars, latency: latency, series: [])
        func names(_ format: ChartFrame.Format) -> Set<Substring> {
            let chart = BenchCharts(figures, format).distribution
            return Set(chart.matches(of: #/<text class="label"[^>]*>(p[\d.]+)</#).map(\.1))
        }
        #expect(names(.wide) == ["p50", "p90", "p99", "p99.9"])
        #expect(names(.slim) == ["p50", "p99", "p99.9"], "p90 would overlap p50")
    }

    /// Ten connections of 90 ms are 0.9 ms of each of a thousand requests.
    @Test func aPhaseCountsByHowManyHadIt() {
        var report = madeReport()
        report.phases = ["connect": ["count": 10, "mean": 90_000], "first_byte": ["count": 1000, "mean": 1800]]
        let page = madePage(report)
        #expect(page.contains("style=\"width:50.0%\" title=\"900 µs of an average request\""), "\(page)")
        #expect(page.contains("style=\"width:100.0%\" title=\"1.8 ms of an average request\""))
    }

    @Test func noRowOfTheTableIsWiderThanATerminal() {
        var report = madeReport()
        report.latency = report.latency.mapValues { _ in 12_345_678_000 }
        let widest = ["p50", "p75", "p90", "p95", "p99", "p99.9", "max", "mean"].map { ($0, 99_949.0) }
        report.phases = Dictionary(
            uniqueKeysWithValues: BenchPhases.Phase.allCases.map {
                ($0.rawValue, Dictionary(uniqueKeysWithValues: widest + [("count", 12)]))
            })
        let text = BenchTable(report).text
        let rows = text.split(separator: "\n").filter { $0.contains("99.9 ms") || $0.hasPrefix("  latency") }
        #expect(rows.count == 8 && rows.allSatisfy { $0.count < 80 }, "\(text)")
        #expect(text.contains("\n    of fewer   queue 12, name 12, connect 12, "), "\(text)")
    }

    /// The most telling figures stay.
    @Test(arguments: [40, 60, 79, 80, 120]) func aNarrowTerminalHasFewerColumns(columns: Int) {
        var report = madeReport(requests: 1000, failed: 10)
        report.warnings = ["the machine is the limit: 100 % of all cores were in use, 11 % by the generator"]
        let lines = BenchTable(report, columns: columns).text.split(separator: "\n").map(String.init)
        #expect(lines.allSatisfy { TerminalText.width($0) < columns }, "\(lines)")
        let heads = lines.first { $0.hasSuffix("max") || $0.hasSuffix("mean") }?.split(separator: " ").map(String.init)
        switch columns {
        case 40: #expect(heads == ["p50", "p99", "max"])
        case 60: #expect(heads == ["p50", "p90", "p99", "p99.9", "max"])
        case 79: #expect(heads == ["p50", "p90", "p95", "p99", "p99.9", "max", "mean"])
        default: #expect(heads?.count == 8)
        }
    }

    @Test(arguments: [
        (0.0...10.0, [0.0, 2, 4, 6, 8, 10]), (0...7.3, [0, 2, 4, 6]), (0...1234, [0, 500, 1000]),
        (0...0.5, [0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    ])
    func ticksAreRound(_ range: ClosedRange<Double>, _ ticks: [Double]) {
        let found = ChartFrame.ticks(range, .linear, atMost: 5)
        #expect(found.count == ticks.count && zip(found, ticks).allSatisfy { abs($0 - $1) < 1e-9 }, "\(found)")
    }

    @Test func logarithmicTicksKeepWithinTheirNumber() {
        #expect(ChartFrame.ticks(90...2_100, .logarithmic, atMost: 11) == [100, 200, 500, 1000, 2000])
        #expect(ChartFrame.ticks(1...10_000_000, .logarithmic, atMost: 5).count <= 8)
        #expect(ChartFrame.ticks(61_000...79_000, .logarithmic, atMost: 5) == [65_000, 70_000, 75_000])
    }
}

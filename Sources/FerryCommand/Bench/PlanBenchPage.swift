internal import Ferry
internal import FerryMeasurement

/// The figures of a load of plans as a self-contained HTML page.
struct PlanBenchPage {
    private let summary: PlanBenchSummary
    private let exitCode: ExitCode

    init(_ summary: PlanBenchSummary, _ exitCode: ExitCode) {
        self.summary = summary
        self.exitCode = exitCode
    }

    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(HTMLText.escaped(summary.name)) · ferry bench</title>
        <style>\(BenchPage.style)</style>
        </head>
        <body>
        \(head)
        \(complaints)
        <section><h2>Duration of the plan</h2>
        \(chart(\.distribution, [("one", "successful runs"), ("two", "percentiles")]))
        </section>
        <section><h2>The plan and its requests</h2>
        \(steps)
        </section>
        <section><h2>Over time</h2>
        \(chart(\.rate, [("one", "successful runs per second"), ("failed", "failed")]))
        \(chart(\.latencies, [("one", "p50"), ("two", "p99"), ("three", "max")]))
        </section>
        \(checks)\(errors)<footer>ferry \(Main.version)</footer>
        </body>
        </html>

        """
    }

    private var head: String {
        let word = exitCode == .success ? "ok" : exitCode == .interrupted ? "interrupted" : "failed"
        let warmUp =
            summary.warmUp > .zero
            ? ", after \(fixed(Double(summary.warmUp.microseconds) / 1e6, 1)) s of warm-up" : ""
        let cutOff = summary.totals.unfinished.count
        return """
            <header>
            <h1>\(HTMLText.escaped(summary.name)) <b class="\(word == "ok" ? "good" : "bad")">\(word)</b></h1>
            <p>\(grouped(summary.runs)) plans in \(fixed(summary.seconds, 2)) s\(warmUp)\
            \(cutOff > 0 ? ", \(grouped(cutOff)) more interrupted" : "")</p>
            </header>
            <div class="tiles">
            \(tile("plans per second", fixed(summary.rate(summary.totals.latencies.count), 1)))
            \(tile("accepted responses per second", grouped(UInt64(summary.rate(summary.accepted)))))
            \(tile("median of a plan", times(summary.totals.latencies)[0]))
            \(tile("failed plans", grouped(summary.totals.failed)))
            </div>
            """
    }

    private func tile(_ name: String, _ figure: String) -> String {
        "<div><small>\(name)</small><strong>\(figure)</strong></div>"
    }

    private func chart(_ drawing: KeyPath<BenchCharts, String>, _ legend: [(kind: String, text: String)]) -> String {
        let latencies = summary.totals.latencies
        let charts = BenchCharts.both(
            BenchCharts.Figures(
                histogram: BenchReport.bars(latencies), latency: latencies.percentiles(BenchReport.percents),
                series: summary.windows.map { BenchReport.Point($0) }), drawing, legend)
        return charts ?? "<p>No run of the plan was ok: \(grouped(summary.totals.failed)) failed.</p>"
    }

    private var steps: String {
        func row(_ name: String, _ latencies: Histogram, _ failed: UInt64) -> [String] {
            [name, grouped(latencies.count + failed), grouped(failed)] + times(latencies)
        }
        let totals = summary.totals
        return BenchPage.table(
            ["", "runs", "failed"] + BenchReport.percents.map(\.name) + ["max"],
            [row("<strong>\(HTMLText.escaped(summary.name))</strong>", totals.latencies, totals.failed)]
                + totals.steps.map { row(HTMLText.escaped($0.name), $0.latencies, $0.failed) })
    }

    /// Without responses there is no latency, and 0 would look like a good one.
    private func times(_ latencies: Histogram) -> [String] {
        (BenchReport.percents.map { latencies.percentile($0.percent) } + [latencies.maximum])
            .map { latencies.count == 0 ? "–" : durationText(nanoseconds: $0) }
    }

    private var complaints: String {
        (summary.checks ?? []).compactMap(\.complaint)
            .map { "<p class=\"notice bad\">\(HTMLText.escaped($0))</p>" }.joined(separator: "\n")
    }

    private var checks: String {
        guard let checks = summary.checks else { return "" }
        let rows = checks.map { check in
            [check.condition, check.explanation].map { HTMLText.escaped($0) } + [check.verdict.rawValue]
        }
        return "<section><h2>Conditions</h2>\n" + BenchPage.table(["", "", ""], rows) + "\n</section>\n"
    }

    private var errors: String {
        let errors = summary.totals.errors
        if errors.named.isEmpty { return "" }
        let rows = errors.named.sorted { $0.key < $1.key }.map { code, count in
            let message = errors.samples[code].map { "<br><small>\(HTMLText.escaped($0))</small>" } ?? ""
            return [HTMLText.escaped(code) + message, grouped(count)]
        }
        return "<section><h2>What failed</h2>\n<div class=\"narrow\">" + BenchPage.table(["", ""], rows)
            + "</div>\n</section>\n"
    }
}

internal import FerryMeasurement

/// A report as a self-contained HTML page: no script, font or other file.
struct BenchPage {
    private let report: BenchReport
    private let ruling: BenchRuling

    /// Creates the page of a report; the ruling has the exit code.
    init(_ report: BenchReport, _ ruling: BenchRuling) {
        self.report = report
        self.ruling = ruling
    }

    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(HTMLText.escaped(report.method)) \(HTMLText.escaped(report.url)) · ferry bench</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        \(head)
        \(notices)
        \(tiles)
        <section><h2>Latency</h2>\(latencyNote)
        \(chart(\.distribution, [("one", "accepted responses"), ("two", "percentiles")]))
        \(percentiles)
        </section>
        <section><h2>Over time</h2>
        \(chart(\.rate, [("one", "accepted responses per second"), ("failed", "failed")]))
        \(chart(\.latencies, [("one", "p50"), ("two", "p99"), ("three", "max")]))
        </section>
        \(phases)\(comparison)\(workers)\(checks)<section><h2>Details</h2>
        \(outcomes)
        </section>
        <footer>ferry \(Main.version) · \(HTMLText.escaped(report.started))</footer>
        </body>
        </html>

        """
    }

    private var head: String {
        let warmUp = report.warmUp > 0 ? ", after \(fixed(report.warmUp, 1)) s of warm-up" : ""
        let cutOff = report.unanswered.map { ", \(grouped($0.count)) more without a response" } ?? ""
        return """
            <header>
            <h1>\(HTMLText.escaped(report.method)) <span>\(HTMLText.escaped(report.url))</span> \
            <b class="\(ruling.exitCode == .success ? "good" : "bad")">\(ruling.word)</b></h1>
            <p>\(HTMLText.escaped(report.model.title)), \(grouped(report.requests)) requests in \
            \(fixed(report.seconds, 2)) s\(warmUp)\(cutOff)</p>
            </header>
            """
    }

    private var notices: String {
        let lines =
            (report.checks ?? []).compactMap(\.complaint).map { "<p class=\"notice bad\">\(HTMLText.escaped($0))</p>" }
            + report.warnings.map { "<p class=\"notice\">\(HTMLText.escaped($0))</p>" }
        return lines.joined(separator: "\n")
    }

    private var tiles: String {
        let cpu = report.cpu.values.reduce(0, +)
        let perSecond = report.seconds > 0 ? Int64(Double(report.bytes) / report.seconds) : 0
        let tiles: [(String, String, String)] = [
            (
                grouped(UInt64(report.rps)), "ok per second",
                report.hasOtherAttempts
                    ? "\(grouped(UInt64(report.attemptsPerSecond))) attempts per second" : bytesText(perSecond) + "/s"
            ),
            (latency("p50"), "median", "mean \(latency("mean"))"),
            (latency("p99"), "p99", "max \(latency("max"))"),
            (grouped(report.failed), "failed", "\(grouped(report.wrongBodies)) wrong bodies"),
            (fixed(cpu, 1) + " µs", "CPU per request", "\(fixed(report.generator.process * 100, 0)) % of all cores"),
            (fixed(Double(report.memory) / 1024, 0) + " MB", "memory", "\(grouped(report.connections)) connections"),
        ]
        let cells = tiles.map { figure, name, more in
            let isBad = name == "failed" && ruling.exitCode != .success && ruling.blamesFailures
            return
                "<div\(isBad ? " class=\"bad\"" : "")><small>\(name)</small><strong>\(figure)</strong><small>\(more)</small></div>"
        }
        return "<div class=\"tiles\">\n\(cells.joined(separator: "\n"))\n</div>"
    }

    private var latencyNote: String {
        report.model.kind == "open"
            ? "<p>Latencies count from when a request was due, not from when it was sent (no coordinated omission).</p>"
            : "<p>Latencies count from when a request was sent. While responses were slow, fewer requests were sent.</p>"
    }

    private var percentiles: String {
        if report.histogram.isEmpty { return "" }
        let names = BenchReport.percents.map(\.name) + ["max", "mean"]
        return table(names, [names.map(latency)])
    }

    private var phases: String {
        let names = ["p50", "p90", "p99", "max", "mean"]
        // The share of an average request: a rare phase, like connecting, is a small part of the time, however long.
        func weight(_ times: [String: Double]) -> Double {
            (times["mean"] ?? 0) * (times["count"] ?? 0) / Double(max(1, report.requests))
        }
        let widest = report.phases.values.map(weight).max() ?? 0
        let rows = BenchPhases.Phase.allCases.compactMap { phase -> [String]? in
            guard let times = report.phases[phase.rawValue] else { return nil }
            let width = fixed(max(0.5, widest > 0 ? weight(times) / widest * 100 : 0), 1)
            let share = "\(time(weight(times))) of an average request"
            return [phase.rawValue.replacing("_", with: " "), grouped(UInt64(times["count"] ?? 0))]
                + names.map { time(times[$0]) } + [
                    "<i class=\"share\" style=\"width:\(width)%\" title=\"\(share)\"></i>"
                ]
        }
        if rows.isEmpty { return "" }
        return "<section><h2>Where the time went</h2>\n\(table(["", "count"] + names + [""], rows))\n</section>\n"
    }

    private var outcomes: String {
        var rows = report.statuses.sorted { $0.key < $1.key }.map { ["status \($0.key)", grouped($0.value)] }
        rows += report.errors.sorted { $0.key < $1.key }.map { code, count in
            let message = report.errorMessages[code].map { "<br><small>\(HTMLText.escaped($0))</small>" } ?? ""
            return [HTMLText.escaped(code) + message, grouped(count)]
        }
        if report.unsent > 0 { rows.append(["not sent", grouped(report.unsent)]) }
        rows.append(["busiest thread of the generator", fixed(report.generator.busiestThread * 100, 0) + " %"])
        rows.append(["all cores, by the generator", fixed(report.generator.process * 100, 0) + " %"])
        rows.append(["all cores, by all processes", fixed(report.generator.machine * 100, 0) + " %"])
        rows.append(["loop lag, p99", time(report.generator.loopLag["p99"])])
        if let late = report.generator.lateness { rows.append(["sent late by, p99", time(late["p99"])]) }
        return "<div class=\"narrow\">\(table(["", ""], rows))</div>"
    }

    private var comparison: String {
        guard let comparison = BenchComparison(report) else { return "" }
        let rows = comparison.lines.map { [$0.name, $0.ours, $0.theirs, $0.ratio] }
        return "<section><h2>Compared with \(HTMLText.escaped(comparison.rival))</h2>\n<div class=\"narrow\">"
            + table(["", "Ferry", HTMLText.escaped(comparison.rival), "ratio"], rows) + "</div>\n</section>\n"
    }

    private var workers: String {
        guard let fleet = report.fleet else { return "" }
        let rows = fleet.enumerated().map { index, member in
            [
                "\(index + 1)", HTMLText.escaped(member.name), grouped(member.requests), member.outcome.rawValue,
                fixed(member.late * 1000, 0) + " ms",
            ]
        }
        return "<section><h2>Workers</h2>\n"
            + table(["worker", "process", "requests", "outcome", "started late by"], rows) + "\n</section>\n"
    }

    private var checks: String {
        guard let checks = report.checks else { return "" }
        let rows = checks.map { check in
            [check.condition, check.explanation].map { HTMLText.escaped($0) } + [check.verdict.rawValue]
        }
        return "<section><h2>Conditions</h2>\n" + table(["", "", ""], rows) + "\n</section>\n"
    }

    private func table(_ head: [String], _ rows: [[String]]) -> String { Self.table(head, rows) }

    /// A table of cells that are HTML already.
    static func table(_ head: [String], _ rows: [[String]]) -> String {
        // A narrow window shows each cell with its heading.
        let cells = rows.map { row in
            let cells = zip(head, row).map { $0.isEmpty ? "<td>\($1)</td>" : "<td data-head=\"\($0)\">\($1)</td>" }
            return "<tr>" + cells.joined() + "</tr>"
        }
        if head.allSatisfy(\.isEmpty) { return "<table>\n\(cells.joined(separator: "\n"))\n</table>" }
        let heads = "<tr>" + head.map { "<th>\($0)</th>" }.joined() + "</tr>\n"
        return "<table class=\"headed\">\n\(heads)\(cells.joined(separator: "\n"))\n</table>"
    }

    private func chart(_ drawing: KeyPath<BenchCharts, String>, _ legend: [(kind: String, text: String)]) -> String {
        let figures = BenchCharts.Figures(
            histogram: report.histogram, latency: report.latency, series: report.series)
        return BenchCharts.both(figures, drawing, legend) ?? "<p>\(whyEmpty)</p>"
    }

    /// The text shown instead of a chart; failures have no latencies.
    private var whyEmpty: String {
        if report.ok > 0 { return "The load was too short for a chart." }
        let statuses = report.statuses.filter { $0.value > 0 }.sorted { $0.key < $1.key }
        var found = statuses.map { "\(grouped($0.value)) of status \($0.key)" }
        let wrong = report.failedBy.body
        if wrong > 0 { found.append("\(grouped(wrong)) with a body that does not match the schema") }
        let lost = report.failedBy.transfer
        if lost > 0 { found.append(lost == 1 ? "1 transfer failed" : "\(grouped(lost)) transfers failed") }
        let head = statuses.isEmpty ? "There was no response" : "No response was accepted"
        return HTMLText.escaped(found.isEmpty ? head : "\(head): \(found.joined(separator: ", "))") + "."
    }

    /// A dash without responses: 0 would look like a good latency.
    private func latency(_ name: String) -> String { time(report.histogram.isEmpty ? nil : report.latency[name]) }

    private func time(_ microseconds: Double?) -> String {
        microseconds.map { durationText(nanoseconds: UInt64($0 * 1000)) } ?? "–"
    }

    static let style = """
        :root { color-scheme: light dark; --ink: #1c2128; --dim: #6a737d; --line: #d8dee4; --paper: #fff; --soft: #f6f8fa;
          --one: #2f6fd0; --two: #d9822b; --three: #8590a0; --bad: #cf222e; --good: #1a7f37; --warn: #fff8e6; }
        @media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #8b949e; --line: #30363d; --paper: #0d1117;
          --soft: #161b22; --one: #6aa4f5; --two: #eaa253; --three: #8a95a5; --bad: #f0656f; --good: #2b8a45; --warn: #2b2410; } }
        body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2.5rem auto;
          max-width: 1000px; padding: 0 1.2rem; }
        h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; } h1 span { font-weight: 500; }
        h1 b { font-size: .75rem; padding: .15rem .6rem; border-radius: 1rem; color: #fff; vertical-align: 3px; }
        b.good { background: var(--good); } b.bad { background: var(--bad); }
        h2 { font-size: 1.05rem; margin: 0 0 .2rem; } p { margin: .2rem 0; color: var(--dim); }
        section { margin-top: 2.4rem; } footer { margin-top: 3rem; color: var(--dim); font-size: 12px; }
        .notice { margin-top: 1rem; padding: .6rem .9rem; border-radius: 8px; background: var(--warn); color: var(--ink);
          border-left: 4px solid var(--two); } .notice.bad { border-color: var(--bad); }
        .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: .8rem; margin-top: 1.4rem; }
        .tiles div { background: var(--soft); border: 1px solid var(--line); border-radius: 10px; padding: .7rem .9rem; }
        .tiles strong { display: block; font-size: 1.45rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
        .tiles .bad strong { color: var(--bad); } small { color: var(--dim); font-size: 12px; }
        svg { display: block; width: 100%; font: 11px system-ui, sans-serif; }
        .axis { fill: var(--dim); } .grid { stroke: var(--line); } .label { fill: var(--ink); font-weight: 600; }
        .bar { fill: var(--one); } .bar:hover { fill: var(--two); } .mark { stroke: var(--two); stroke-dasharray: 3 3; }
        .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .line.one { stroke: var(--one); }
        .line.two { stroke: var(--two); } .line.three { stroke: var(--three); stroke-width: 1.3; }
        .area { fill: var(--one); opacity: .14; } rect.failed { fill: var(--bad); }
        .legend { margin-top: 1rem; } .legend span { margin-right: 1.2rem; white-space: nowrap; display: inline-block; } .legend i { display: inline-block; width: .8rem;
          height: .8rem; margin-right: .4rem; border-radius: 2px; vertical-align: -1px; } i.one { background: var(--one); }
        i.two { background: var(--two); } i.three { background: var(--three); } i.failed { background: var(--bad); }
        table { border-collapse: collapse; margin-top: .8rem; width: 100%; } th { color: var(--dim); font-weight: 500; }
        th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap;
          font-variant-numeric: tabular-nums; } td small { white-space: normal; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
        th:last-child, td:last-child { padding-right: 0; } .narrow { max-width: 520px; } td:has(.share) { width: 26%; text-align: left; }
        .share { display: block; height: .7rem; border-radius: 3px; background: var(--one); }
        \(HTMLText.stackedTables)
        \(ChartFrame.Format.style)
        """
}

internal import Ferry
internal import FerryMeasurement

/// The results of plans as one self-contained page: a waterfall in SVG, and the figures.
struct PlanPage {
    private let reports: [PlanReport]

    init(_ reports: [PlanReport]) { self.reports = reports }

    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(HTMLText.escaped(reports.map(\.name).joined(separator: ", "))) · ferry run</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        \(reports.map(section).joined(separator: "\n"))
        </body>
        </html>

        """
    }

    private func section(_ report: PlanReport) -> String {
        let verdict = report.isOK ? "ok" : "failed"
        let legend = PlanPhase.allCases.map { "<span><i class=\"\($0.rawValue)\"></i>\($0.rawValue)</span>" }
        return """
            <section>
            <h1>\(HTMLText.escaped(report.name)) <b class="\(verdict)">\(verdict)</b></h1>
            <p>\(report.finished) of \(report.rows.count) steps in \(durationText(nanoseconds: report.nanoseconds))</p>
            <p class="legend">\(legend.joined())<span><i class="cache"></i>from the cache</span>\
            <span><i class="other"></i>other</span><span><i class="bad"></i>failed</span></p>
            \(waterfall(report))
            <table class="headed">
            <tr><th>step</th><th>status</th><th>start</th><th>total</th>\
            \(PlanPhase.allCases.map { "<th>\($0.rawValue)</th>" }.joined())<th>cached</th><th>attempts</th></tr>
            \(report.rows.map(figures).joined(separator: "\n"))
            </table>
            </section>
            """
    }

    private func figures(_ row: PlanRow) -> String {
        let status = row.status.map(String.init) ?? row.state.rawValue
        let error = row.fault.map { "\n<tr class=\"fault\"><td colspan=\"10\">\(HTMLText.escaped($0))</td></tr>" } ?? ""
        if row.state == .skipped {
            return
                "<tr class=\"skipped\"><td>\(HTMLText.escaped(row.name))</td><td colspan=\"9\">\(HTMLText.escaped(row.skipped))</td></tr>"
        }
        let times = PlanPhase.times(of: row)
        let phases = PlanPhase.allCases.map {
            "<td data-head=\"\($0.rawValue)\">\(times[$0].map { durationText(nanoseconds: $0) } ?? "–")</td>"
        }
        return """
            <tr class="\(row.state.rawValue)"><td>\(HTMLText.escaped(row.name))</td><td data-head="status">\(status)</td>\
            <td data-head="start">\(durationText(nanoseconds: row.start))</td>\
            <td data-head="total">\(durationText(nanoseconds: row.nanoseconds))</td>\
            \(phases.joined())<td data-head="cached">\(row.cached)</td><td data-head="attempts">\(row.attempts)</td></tr>\(error)
            """
    }

    // MARK: The waterfall

    /// The layout of a waterfall: names before the bars or, in a narrow window, above them.
    private struct Measures {
        let format: ChartFrame.Format
        let rowHeight: Double
        let left: Double
        let chart: Double
        let bar: Double
        /// The width of the names.
        let room: Double

        static let all = [
            Measures(format: .wide, rowHeight: 22, left: 220, chart: 700, bar: 4, room: 220),
            Measures(format: .slim, rowHeight: 38, left: 18, chart: 302, bar: 20, room: 390),
        ]
    }

    private func waterfall(_ report: PlanReport) -> String {
        Measures.all.map { measures in
            "<div class=\"\(measures.format.name)\">\(waterfall(report, measures))</div>"
        }.joined(separator: "\n")
    }

    private func waterfall(_ report: PlanReport, _ measures: Measures) -> String {
        let end = Double(max(report.rows.map(\.end).max() ?? 0, 1))
        let height = measures.rowHeight * Double(report.rows.count)
        func x(_ nanoseconds: Double) -> Double { measures.left + nanoseconds / end * measures.chart }
        var svg = """
            <svg viewBox="0 0 \(Int(measures.left + measures.chart) + 90) \(Int(height) + 30)" \
            role="img" aria-label="waterfall of \(HTMLText.escaped(report.name))">

            """
        for tick in ChartFrame.ticks(0...end, .linear, atMost: measures.format.ticks) {
            let place = x(tick)
            svg += "<line class=\"tick\" x1=\"\(n(place))\" y1=\"0\" x2=\"\(n(place))\" y2=\"\(n(height + 6))\"/>"
            svg += "<text class=\"axis\" x=\"\(n(place))\" y=\"\(n(height + 22))\" text-anchor=\"middle\">"
            svg += BenchCharts.time(tick / 1000) + "</text>\n"
        }
        for (index, row) in report.rows.enumerated() {
            svg += bars(row, y: Double(index) * measures.rowHeight, measures, x) + "\n"
        }
        return svg + "</svg>"
    }

    private func bars(_ row: PlanRow, y: Double, _ measures: Measures, _ x: (Double) -> Double) -> String {
        let indent = 4 + 12 * Double(max(row.depth - 1, 0))
        let room = max(6, Int((measures.room - indent) / 7.5))
        let name = row.name.count > room ? row.name.prefix(room - 1) + "…" : row.name
        var svg = "<g class=\"\(row.state.rawValue)\"><title>\(HTMLText.escaped(row.name)): \(title(row))</title>"
        svg += "<text x=\"\(n(indent))\" y=\"\(n(y + 15))\">\(HTMLText.escaped(name))</text>"
        let y = y + measures.bar - 4
        if row.state == .skipped {
            return svg
                + "<text class=\"axis\" x=\"\(n(measures.left + 4))\" y=\"\(n(y + 15))\">\(HTMLText.escaped(row.skipped))</text></g>"
        }
        let (start, end) = (Double(row.start), Double(row.end))
        svg += bar(row.isFromCache ? "cache" : "other", from: x(start), to: max(x(end), x(start) + 1), y)
        var place = start
        let times = PlanPhase.times(of: row)
        for phase in PlanPhase.allCases {
            guard let time = times[phase] else { continue }
            let next = min(place + Double(time), end)
            if next > place { svg += bar(phase.rawValue, from: x(place), to: x(next), y) }
            place = next
        }
        let label = durationText(nanoseconds: row.nanoseconds)
        return svg + "<text class=\"axis\" x=\"\(n(x(end) + 5))\" y=\"\(n(y + 15))\">\(label)</text></g>"
    }

    private func bar(_ kind: String, from start: Double, to end: Double, _ y: Double) -> String {
        "<rect class=\"\(kind)\" x=\"\(n(start))\" y=\"\(n(y + 4))\" width=\"\(n(max(end - start, 0.5)))\" height=\"14\"/>"
    }

    private func title(_ row: PlanRow) -> String {
        var words = [row.status.map(String.init) ?? row.state.rawValue, durationText(nanoseconds: row.nanoseconds)]
        if row.isFromCache { words.append("from the cache" + (row.cached == "stale" ? ", stale" : "")) }
        let times = PlanPhase.times(of: row)
        for phase in PlanPhase.allCases {
            if let time = times[phase] { words.append("\(phase.rawValue) \(durationText(nanoseconds: time))") }
        }
        if let message = row.message { words.append(HTMLText.escaped(message)) }
        return words.joined(separator: ", ")
    }

    private func n(_ value: Double) -> String { fixed(value, 1) }

    private static let style = """
        :root { color-scheme: light dark; --ink: #1c2128; --dim: #6a737d; --line: #d0d7de; --paper: #fff;
          --queue: #98a2b0; --connect: #d99a2b; --wait: #3e7fd0; --body: #2f9e62; --cache: #8a63c9; --other: #dde2e8; --bad: #e5707a; --wrong: #cf222e; }
        @media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #8b949e; --line: #30363d; --paper: #0d1117;
          --queue: #8b95a3; --connect: #e3ad45; --wait: #5b9cf0; --body: #3fb877; --cache: #a583e0; --other: #363e48; --bad: #b8434e; --wrong: #f0656f; } }
        body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
          max-width: 1040px; padding: 0 1rem; }
        h1 { font-size: 1.4rem; margin: 0; } h1 b { font-size: .8rem; padding: .1rem .5rem; border-radius: 1rem; color: #fff; }
        b.ok { background: #1a7f37; } b.failed { background: #cf222e; }
        section { margin-bottom: 3rem; } p { margin: .3rem 0; color: var(--dim); }
        .legend span { margin-right: 1.2rem; white-space: nowrap; display: inline-block; } .legend i { display: inline-block; width: .8rem; height: .8rem;
          margin-right: .4rem; vertical-align: -1px; border-radius: 2px; }
        svg { width: 100%; font: 12px system-ui, sans-serif; } svg text { fill: var(--ink); }
        svg .axis { fill: var(--dim); font-size: 11px; } .tick { stroke: var(--line); }
        .queue { fill: var(--queue); background: var(--queue); } .connect { fill: var(--connect); background: var(--connect); }
        .wait { fill: var(--wait); background: var(--wait); } .body { fill: var(--body); background: var(--body); }
        .cache { fill: var(--cache); background: var(--cache); } .bad { background: var(--bad); }
        .other { fill: var(--other); background: var(--other); } g.failed .other, g.cancelled .other { fill: var(--bad); }
        g.skipped text { fill: var(--dim); }
        table { border-collapse: collapse; width: 100%; margin-top: 1rem; }
        th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
          font-variant-numeric: tabular-nums; }
        th { color: var(--dim); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
        tr.failed td, tr.cancelled td, tr.fault td { color: var(--wrong); } tr.failed:has(+ .fault) td { border-bottom: 0; }
        tr.fault td { white-space: normal; overflow-wrap: anywhere; padding-top: 0; } tr.skipped td { color: var(--dim); text-align: left; }
        \(HTMLText.stackedTables)
        \(ChartFrame.Format.style)
        """
}

/// A plan as a tree, for `--dry-run`.
struct PlanOutline {
    private let plan: Plan

    init(_ plan: Plan) { self.plan = plan }

    var text: String {
        let head =
            "\(plan.name), \(plan.root.count) steps" + (plan.base.map { ", on \($0.source)" } ?? "")
            + (plan.cache.map { ", responses stored in \($0.directory.source)" } ?? "")
        return Main.oneLine(head) + "\n" + lines(plan.root, depth: 1).map { Main.oneLine($0) + "\n" }.joined()
    }

    private func lines(_ node: PlanNode, depth: Int) -> [String] {
        let indent = String(repeating: "  ", count: depth)
        switch node.kind {
        case .request(let name): return plan.requests[name].map { [indent + line($0)] } ?? []
        case .batch(let nodes, let limit, let collects, let deadline):
            var head = "batch"
            if let limit { head += ", at most \(limit) at once" }
            if collects { head += ", all collected" }
            return [indent + head + bound(deadline)] + nodes.flatMap { lines($0, depth: depth + 1) }
        case .chain(let nodes, let deadline):
            return [indent + "chain" + bound(deadline)] + nodes.flatMap { lines($0, depth: depth + 1) }
        case .repeated(let node, let times):
            return ["\(indent)\(times) times"] + lines(node, depth: depth + 1)
        }
    }

    private func bound(_ deadline: Duration?) -> String { deadline.map { ", within \($0)" } ?? "" }

    private func line(_ request: PlanRequest) -> String {
        var line = "\(request.name): \(request.method) \(request.path.source)"
        if !request.query.isEmpty {
            line += "?" + request.query.map { "\($0.name)=\($0.value.source)" }.joined(separator: "&")
        }
        if request.body != nil { line += ", with a body" }
        if let retries = request.retries, retries > 0 { line += ", up to \(retries) retries" }
        switch request.cache?.lifetime {
        case .seconds(let time)?: line += ", kept for \(time)"
        case .http?: line += ", cached as the server says"
        case nil: break
        }
        if !request.captures.isEmpty { line += ", captures " + request.captures.map(\.name).joined(separator: ", ") }
        let ranges = request.status.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
        line += ", expects " + ranges.joined(separator: ", ")
        if request.schema != nil { line += " and a schema" }
        return line
    }
}

internal import FerryMeasurement

/// Ferry's figures beside those of another client.
struct BenchComparison {
    /// One figure of both, and how many times the other's it is.
    struct Line: Sendable, Equatable {
        let name: String
        let ours: String
        let theirs: String
        let ratio: String
    }

    let rival: String
    let lines: [Line]

    /// `nil` when there was none.
    init?(_ report: BenchReport) {
        guard let other = report.comparison else { return nil }
        rival = other.name
        func line(_ name: String, _ ours: Double, _ theirs: Double, _ text: (Double) -> String) -> Line {
            Line(
                name: name, ours: text(ours), theirs: text(theirs),
                ratio: theirs > 0 ? fixed(ours / theirs, 2) + " ×" : "–")
        }
        func time(_ microseconds: Double) -> String { durationText(nanoseconds: UInt64(microseconds * 1000)) }
        lines =
            [line("answers a second", report.rps, other.rps) { grouped(UInt64($0)) }]
            + ["p50", "p99", "max"].map { line($0, report.latency[$0] ?? 0, other.latency[$0] ?? 0, time) }
            + [
                line("CPU a request", report.cpu.values.reduce(0, +), other.cpu.values.reduce(0, +)) {
                    fixed($0, 1) + " µs"
                },
                line("memory", Double(report.memory), Double(other.memory)) { fixed($0 / 1024, 1) + " MB" },
                line("failed", Double(report.failed), Double(other.failed)) { grouped(UInt64($0)) },
            ]
    }

    /// For people.
    var table: String {
        func row(_ cells: [String]) -> String {
            "  " + cells[0].padded(to: 19, gap: 1)
                + cells.dropFirst().map { $0.aligned(right: 14) }.joined() + "\n"
        }
        return "\n" + row(["", "Ferry", rival, "ratio"])
            + lines.map { row([$0.name, $0.ours, $0.theirs, $0.ratio]) }.joined()
    }
}

import Testing

@testable import FerryBenchmarks

/// The tables for the manual.
@Suite struct MarkdownTableTests {
    private static func measurement(_ microseconds: Double) -> Measurement {
        var measurement = Measurement()
        measurement.ok = 1000
        measurement.userTime = microseconds * 1000
        measurement.seconds = 0.1
        return measurement
    }

    private static var table: ResultTable {
        var table = ResultTable()
        table.add(measurement(10), case: "get12@64", rival: .bare)
        table.add(measurement(14), case: "get12@64", rival: .await)
        table.add(measurement(15), case: "get12@1000", rival: .await)
        return table
    }

    @Test func eachClientHasItsRatioToTheBareOne() {
        let lines = MarkdownTable(table: Self.table).text.split(separator: "\n")
        #expect(lines.contains("| bare client in C | 10.0 µs · 10,000 | 1.00 |"))
        #expect(lines.contains("| Ferry, await | 14.0 µs · 10,000 | 1.40 |"))
        #expect(lines.contains("| Ferry, await | 14.0 µs · 10,000 | 15.0 µs · 10,000 |"))
    }

    @Test func goalsStandWithBothSidesAndMissesAreSeen() {
        let lines = MarkdownTable(table: Self.table).text.split(separator: "\n")
        #expect(
            lines.contains(
                "| 12 bytes, 64 at once, await: CPU × the bare client | ≤ 1.25 × | 14 : 10 µs | 1.40 | **missed** |"))
        #expect(
            lines.contains("| 1,000 at once, await: CPU × 64 at once | ≤ 1.20 × | 15 : 14 µs | 1.07 | reached |"))
        #expect(!lines.contains { $0.contains("URLSession") })
    }

    @Test func whereNothingWasMeasuredThereIsNothing() {
        #expect(MarkdownTable(table: ResultTable()).text.isEmpty)
    }

    /// With a cell more or less than the head, it is not a table.
    @Test func allLinesOfATableHaveAsManyCells() {
        for part in MarkdownTable(table: Self.table).text.split(separator: "\n\n") {
            let counts = Set(part.split(separator: "\n").map { $0.count { $0 == "|" } })
            #expect(counts.count == 1, "\(part)")
        }
    }
}

import Foundation
import Testing

@testable import FerryMeasurement

@Suite struct LinePlotTests {
    @Test(arguments: [(0.0, 1.0), (0.3, 0.3), (1, 1), (7, 8), (11, 12), (299, 300), (301, 400), (1e6, 1e6)])
    func axesEndAtARoundNumber(value: Double, end: Double) {
        #expect(abs(LinePlot.round(value) - end) < 1e-9)
    }

    @Test func aPointStandsWhereItBelongs() {
        let plot = LinePlot(
            title: "a < b", xLabel: "s", yLabel: "MB", lines: [.init(name: "x & y", points: [(0, 0), (10, 20)])])
        let svg = plot.svg
        #expect(svg.contains("a &lt; b") && svg.contains("x &amp; y"))
        #expect(svg.contains("<polyline points=\"64.0,276.0 704.0,40.0\""), "from one corner to the other")
        #expect(svg.hasPrefix("<svg") && svg.hasSuffix("</svg>\n"))
    }

    @Test func powersOfTenAreAtEvenDistances() {
        let plot = LinePlot(
            title: "t", xLabel: "at once", yLabel: "µs",
            lines: [.init(name: "n", points: [(1, 10), (10, 100), (100, 1000), (0, 5), (5, 0)])], scales: .logarithmic)
        let svg = plot.svg
        #expect(svg.contains("points=\"64.0,276.0 384.0,158.0 704.0,40.0\""), "what has no logarithm is left out")
        #expect(svg.components(separatedBy: "<circle").count == 4)
        #expect(svg.contains(">1,000</text>"))
    }

    @Test func noFigureIsCutAtTheEdges() throws {
        let plot = LinePlot(
            title: "t", xLabel: "bytes", yLabel: "µs",
            lines: [.init(name: "n", points: [(100, 1), (10_485_760, 1_000_000)])], scales: .logarithmic)
        let svg = plot.svg
        // 7.7 is a digit of the widest of the usual fonts.
        for match in svg.matches(of: #/<text x="([\d.]+)" y="[\d.]+" text-anchor="(middle|end)">([\d,]+)</text>/#) {
            let width = Double(match.3.count) * 7.7
            let end = try #require(Double(match.1)) + (match.2 == "middle" ? width / 2 : 0)
            #expect(end <= 720 && end - width >= 0, "\(match.3)")
        }
        #expect(svg.contains(">10,000,000</text>") && !svg.contains(">100,000,000</text>"), "little beyond the last")
    }

    @Test func namesInTheLegendDoNotTouch() throws {
        let names = ["C core alone", "Ferry, await", "Ferry, closures", "Go net/http", "wrk", "URLSession"]
        let lines = names.map { LinePlot.Line(name: $0, points: [(1, 1)]) }
        let svg = LinePlot(title: "t", xLabel: "x", yLabel: "y", lines: lines).svg
        let starts = svg.matches(of: #/<rect x="([\d.]+)"/#).compactMap { Double($0.1) }
        try #require(starts.count == names.count)
        for (index, name) in names.enumerated() {
            let end = starts[index] + 18 + Double(name.count) * 6.5
            #expect(end < (index + 1 < starts.count ? starts[index + 1] : 720), "\(name)")
        }
    }

    @Test func manyNamesHaveARowOfTheirOwn() {
        let lines = (1...6).map { LinePlot.Line(name: "client \($0)", points: [(1, 1)]) }
        let svg = LinePlot(title: "t", xLabel: "x", yLabel: "y", lines: lines).svg
        for line in 1...6 { #expect(svg.contains("y=\"40.0\">client \(line)</text>")) }
        let empty = LinePlot(title: "t", xLabel: "x", yLabel: "y", lines: [], scales: .logarithmic).svg
        #expect(!empty.contains("nan") && !empty.contains("inf"))
    }

    @Test func wholeNumbersHaveNoPoint() {
        #expect(LinePlot.number(250) == "250")
        #expect(LinePlot.number(0.25) == "0.25")
    }
}

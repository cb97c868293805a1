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

    @Test func wholeNumbersHaveNoPoint() {
        #expect(LinePlot.number(250) == "250")
        #expect(LinePlot.number(0.25) == "0.25")
    }
}

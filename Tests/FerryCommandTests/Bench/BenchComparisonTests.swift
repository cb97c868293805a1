import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

@Suite(.timeLimit(.minutes(2))) struct BenchComparisonTests {
    @Test func figuresStandBesideEachOther() throws {
        var report = madeReport()
        #expect(BenchComparison(report) == nil)
        var latencies = Histogram()
        for value in 1...100 as ClosedRange<UInt64> { latencies.record(value * 1_000_000) }
        report.comparison = RivalReport(
            name: "URLSession", latencies: latencies, failed: 0, seconds: 1, usage: .zero, memory: 65_536)
        let comparison = try #require(BenchComparison(report))
        #expect(comparison.lines[0] == .init(name: "requests a second", ours: "1,000", theirs: "100", ratio: "10.00 ×"))
        #expect(comparison.lines.first { $0.name == "memory" }?.ratio == "0.50 ×")
        #expect(comparison.lines.first { $0.name == "CPU a request" }?.ratio == "–")
        #expect(BenchTable(report).text.contains("URLSession") && BenchPage(report).html.contains("Beside URLSession"))
    }

    /// Against the built programs, which lie beside each other.
    @Test func urlSessionIsAskedTheSame() async throws {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let folder = URL(filePath: bundle).deletingLastPathComponent()
        try await withLoopbackServer { server in
            let line = [
                folder.appending(path: "ferry").path, "bench", server.baseURL + "/hello", "-n", "20", "-c", "2", "-H",
                "X-A: b", "--compare", "urlsession", "--json",
            ]
            #if FERRY_ASAN
            // URLSession does not free all of libcurl's URLs.
            let environment = ["ASAN_OPTIONS": "detect_leaks=0"]
            #else
            let environment: [String: String] = [:]
            #endif
            let end = try ChildProcess(line, environment: environment).finish()
            #expect(end.code == 0)
            let report = try JSONDecoder().decode(BenchReport.self, from: Data(end.output.utf8))
            #expect(report.ok == 20 && report.comparison?.ok == 20 && report.comparison?.name == "URLSession")
            #expect(server.requestCount == 40 && server.requests.allSatisfy { $0.headers["X-A"] == "b" })
        }
    }

    @Test func whatTheOtherClientCannotDoIsRefused() async {
        for line in [["-r", "5"], ["-d", "x"], ["-k"], ["--schema", "f"]] {
            #expect(await Main.run(["bench", "http://127.0.0.1:1/", "--compare", "urlsession"] + line) != .success)
        }
        #expect(await Main.run(["bench", "--compare", "netscape"]) == .usage)
    }
}

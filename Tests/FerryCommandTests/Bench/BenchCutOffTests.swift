import Ferry
import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// Loads that ctrl-C ends: requests without a response are included in the figures, and the measurements are reported.
@Suite(.timeLimit(.minutes(2))) struct BenchCutOffTests {
    private static let answer = LoopbackScript.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    private func plan(_ line: [String]) throws -> BenchPlan {
        try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
    }

    /// A load on a server that responds to the first ten requests only; cut off once the server has received `count`.
    private func report(_ count: Int, _ line: String...) async throws -> BenchReport {
        try await withLoopbackServer { server in
            server.script(path: "/", uses: 10, [Self.answer, .close])
            server.script(path: "/", [.wait("never"), .close])
            let run = BenchRun(try plan([server.baseURL + "/"] + line))
            let load = Task { await run.perform() }
            try await server.waitForRequests(count)
            load.cancel()
            return await load.value
        }
    }

    @Test func theOpenModelCountsHowLongTheyHadWaited() async throws {
        let report = try await report(50, "-r", "1000", "-n", "50")
        let unanswered = try #require(report.unanswered)
        #expect(report.ok <= 10 && report.failed == 0 && report.requests == report.ok)
        #expect(report.ok + unanswered.count == 50)
        #expect(report.histogram.map(\.count).reduce(0, +) == 50)
        // Most have no response: the median is one of theirs.
        #expect(try #require(report.latency["max"]) >= unanswered.oldest && unanswered.oldest > 0)
        #expect(BenchTable(report).text.contains(", 0 failed, \(unanswered.count) more without a response\n"))
        #expect(madePage(report).contains(", \(unanswered.count) more without a response</p>"))
        let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let schema = try SchemaFile.schema(at: root + "/Sources/FerryCommand/Schemas/bench-report.schema.json")
        try schema.check(JSON(parsing: report.json))
    }

    @Test func theClosedModelSaysThatTheyAreMissing() async throws {
        let report = try await report(12, "-c", "2", "-n", "100")
        #expect(report.ok == 10 && report.unanswered?.count == 2)
        #expect(report.histogram.map(\.count).reduce(0, +) == 10)
    }

    @Test func itIsAWarningWhereTheyWaitedLongest() {
        var totals = BenchTotals()
        totals.latencies.record(5_000_000)
        #expect(BenchReport.warnings(totals, .open(rate: 1)).isEmpty)
        totals.unanswered.record(4_000_000)
        #expect(BenchReport.warnings(totals, .open(rate: 1)).isEmpty)
        totals.unanswered.record(2_000_000_000)
        let words = "2 requests had no response when the load was interrupted, the oldest for 2.00 s; "
        #expect(
            BenchReport.warnings(totals, .open(rate: 1)) == [words + "latencies include the time that they had waited"])
        #expect(BenchReport.warnings(totals, .closed(concurrency: 2)) == [words + "latencies do not include them"])
    }

    @Test func plansCutOffAreCounted() async throws {
        let plan = try PlanSchema.plan(#"{"requests": {"a": "/slow"}, "run": "a"}"#)
        try await withLoopbackServer { server in
            server.script(path: "/slow", [.wait("never"), .close])
            let start = try PlanStart(plan, base: server.baseURL)
            let load = try self.plan(["-c", "2", "-n", "10"])
            let bench = Task { await PlanBench.perform(start, load) }
            try await server.waitForRequests(2)
            bench.cancel()
            let summary = await bench.value
            #expect(summary.runs == 0 && summary.totals.unfinished.count == 2)
            #expect(summary.table(columns: 80).contains("  2 more were interrupted, the oldest after "))
            let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
            let path = root + "/Sources/FerryCommand/Schemas/plan-bench-report.schema.json"
            let json = try JSON(parsing: summary.json)
            try SchemaFile.schema(at: path).check(json)
            #expect(json.value(atPointer: "/unfinished/count")?.int == 2)
        }
    }
}

import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `ferry bench --plan`
@Suite(.timeLimit(.minutes(2))) struct PlanBenchTests {
    private func load(_ line: String...) throws -> BenchPlan {
        try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
    }

    private static let none = BenchVerdict([], baseline: nil)

    private func plan(_ text: String) throws -> Plan { try PlanSchema.plan(text) }

    @Test func requestsOfAPlanUseTheCacheIfAsked() async throws {
        let plan = try plan(#"{"requests": {"a": "/fresh"}, "run": "a"}"#)
        try await withLoopbackServer { server in
            server.handle("/fresh") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "a") }
            let arguments = try ParsedArguments(["--http-cache"], of: BenchCommand.allOptions)
            let start = try PlanStart(plan, base: server.baseURL).cached(arguments)
            let summary = await PlanBench.perform(start, try load("-n", "50", "-c", "1"))
            #expect(summary.runs == 50 && summary.totals.failed == 0 && server.requestCount == 1)
        }
    }

    @Test func everyRunOfThePlanAndOfItsStepsIsCounted() async throws {
        let plan = try plan(
            #"""
            {"name": "shop", "requests": {"quick": "/hello", "slow": "/delay/20"},
             "run": {"chain": [{"request": "quick", "repeat": 3}, {"batch": ["slow", "quick"]}]}}
            """#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "10", "-c", "3"))
            #expect(server.requestCount == 50)
            #expect(summary.runs == 10 && summary.totals.failed == 0 && summary.exitCode(Self.none) == .success)
            #expect(summary.totals.steps.map(\.name) == ["quick", "slow"])
            #expect(summary.totals.steps.map(\.latencies.count) == [40, 10])
            let json = try JSON(parsing: summary.json)
            #expect(json["plan"]?.string == "shop" && json["runs"]?.int == 10 && json["ok"]?.int == 10)
            #expect(json["failed"]?.int == 0 && json["requests"]?.int == 50)
            #expect((json["rps"]?.double ?? 0) > 0 && (json["seconds"]?.double ?? 0) > 0)
            for pointer in ["/latency_us", "/steps/0/latency_us", "/steps/1/latency_us"] {
                let figures = try #require(json.value(atPointer: pointer))
                let percentiles = try (BenchReport.percents.map(\.name) + ["max"]).map {
                    try #require(figures[$0]?.double)
                }
                #expect(
                    percentiles == percentiles.sorted() && (percentiles.first ?? 0) > 0, "\(pointer): \(percentiles)")
                let mean = try #require(figures["mean"]?.double)
                #expect(mean > 0 && mean <= percentiles.last ?? 0)
            }
            #expect(
                (json.value(atPointer: "/steps/1/latency_us/p50")?.double ?? 0) >= 20_000, "the server waits so long")
            let lines = summary.table(columns: 80).split(separator: "\n").map { $0.split(separator: " ") }
            #expect(lines.count == 5)
            #expect(lines[0].prefix(2) == ["runs", "failed"] && lines[0].last == "max")
            #expect(lines[2].prefix(3) == ["quick", "40", "0"] && lines[3].prefix(3) == ["slow", "10", "0"])
            #expect(lines[4].prefix(2) == ["10", "plans"])
        }
    }

    @Test func eachMemberOfABatchHasAConnection() async throws {
        let plan = try plan(
            #"""
            {"requests": {"a": "/hello", "b": "/hello", "c": "/hello"},
             "run": {"chain": ["a", {"batch": ["b", {"chain": ["a", {"batch": ["b", "c"]}]}, "c"]}, {"repeat": 9, "request": "c"}]}}
            """#)
        #expect(plan.root.width == 4)
        #expect(try load("-n", "1", "-c", "3").connections(of: plan.root) == 12)
        #expect(try load("-n", "1", "-c", "3", "--connections", "2").connections(of: plan.root) == 2)
        #expect(try load("-n", "1", "-c", "1000000").connections(of: plan.root) <= 10_000)
        let bounded = try self.plan(
            #"{"requests": {"a": "/hello"}, "run": {"batch": ["a", "a", "a"], "atMost": 2}}"#)
        #expect(bounded.root.width == 2)
        try await withLoopbackServer { server in
            // Neither gets a response before both have arrived.
            server.script(
                path: "/a", [.wait("both"), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .serve])
            let start = try PlanStart(
                self.plan(#"{"requests": {"a": "/a"}, "run": {"batch": ["a", "a"]}}"#), base: server.baseURL)
            let load = try load("-n", "1", "-c", "1")
            let bench = Task { await PlanBench.perform(start, load) }
            try await server.waitForRequests(2)
            server.signal("both")
            #expect(await bench.value.runs == 1)
            #expect(server.connectionCount == 2)
        }
    }

    @Test(arguments: [80, 120, 200]) func theTableIsAsWideAsTheTerminal(columns: Int) throws {
        let names = ["a", "a request whose name says at length what it is for and what it needs", "名前の長いリクエスト、とても長い"]
        var steps = names.map { PlanBenchTotals.Step(name: $0) }
        for index in steps.indices { steps[index].latencies.record(123_456_789_012) }
        var totals = PlanBenchTotals(steps: steps)
        totals.latencies.record(123_456_789_012)
        let summary = PlanBenchSummary(
            name: "a plan", totals: totals, nanoseconds: 1_000_000_000, usage: ProcessUsage.now)
        let lines = summary.table(columns: columns).split(separator: "\n").prefix(5)
        #expect(lines.allSatisfy { TerminalText.width(String($0)) < columns }, "\(lines)")
        let head = lines[0].split(separator: " ")
        #expect(head.first == "runs" && head.last == "max" && head.contains("p50") && head.contains("p99"))
        #expect(head.contains("p99.9") == (columns > 150))
    }

    @Test func whatFailsIsCountedWhereItFailed() async throws {
        let plan = try plan(
            #"""
            {"requests": {"first": "/hello", "gone": "/status/404", "never": "/hello"},
             "run": {"chain": ["first", "gone", "never"]}}
            """#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "4", "-c", "2"))
            #expect(summary.runs == 4 && summary.totals.failed == 4 && summary.totals.latencies.count == 0)
            #expect(summary.exitCode(Self.none) == .statusNotAccepted)
            #expect(summary.totals.steps.map(\.latencies.count) == [4, 0, 0])
            #expect(summary.totals.steps.map(\.failed) == [0, 4, 0], "what never began has not failed")
            let json = try JSON(parsing: summary.json)
            #expect(json.value(atPointer: "/steps/1/failed")?.int == 4 && json["ok"]?.int == 0)
            #expect(json["requests"]?.int == 8)
        }
    }

    @Test func errorsAreToldByTheirCode() async throws {
        let plan = try plan(
            #"{"requests": {"a": "http://127.0.0.1:1/", "gone": "/status/404"}, "run": {"batch": ["a", "gone"], "collect": true}}"#
        )
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "3", "-c", "1"))
            #expect(summary.totals.errors.named == ["connect(refused)": 3, "invalidStatusCode(404)": 3])
            #expect(
                summary.table(columns: 80).contains("\n  error        connect(refused)  3: Failed to connect"),
                "\(summary.table(columns: 80))")
            let json = try JSON(parsing: summary.json)
            #expect(json.value(atPointer: "/errors/connect(refused)")?.int == 3)
            #expect(json["error_messages"]?["invalidStatusCode(404)"]?.string?.isEmpty == false)
            #expect(json["rps"]?.double == 0 && (json["attempts_per_second"]?.double ?? 0) > 0)
        }
    }

    @Test func whatEndsARunWithoutARequestsFaultIsTold() async throws {
        let plan = try plan(#"{"requests": {"a": "/slow"}, "run": {"chain": ["a"], "deadline": 0.02}}"#)
        try await withLoopbackServer { server in
            server.script(path: "/slow", [.wait("never"), .close])
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "2", "-c", "1"))
            #expect(summary.totals.failed == 2 && summary.totals.errors.named.values.reduce(0, +) == 2)
            #expect(summary.totals.errors.named["timeout(deadline)"] == 2, "\(summary.totals.errors.named)")
        }
    }

    @Test func theWarmUpDoesNotCount() async throws {
        let plan = try plan(#"{"requests": {"a": "/hello"}, "run": "a"}"#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "5", "-c", "1", "-w", "0.1"))
            #expect(summary.runs == 5 && server.requestCount > 5)
            #expect(summary.table(columns: 80).contains(" s, after 0.1 s of warm-up: "))
        }
    }

    @Test func conditionsMayBeHeldToIt() async throws {
        let file = try TemporaryFile(Array(#"{"requests": {"a": "/status/404"}, "run": "a"}"#.utf8))
        let line = ["bench", "--plan", file.path, "-n", "4", "-c", "1"]
        func end(_ conditions: String...) throws -> ChildProcess.End {
            try FerryProgram.run(line + conditions.flatMap { ["--fail-if", $0] })
        }
        #expect(try end().code == 5)
        let allowed = try end("failed>100%", "p50>10s")
        #expect(allowed.code == 0 && allowed.output.contains("  check        ok      failed>100%  "), "\(allowed)")
        let missed = try end("rps<1")
        #expect(missed.code == 4 && missed.output.hasSuffix("ferry bench: rps<1: rps is 0\n"), "\(missed)")
        for other in ["wrong>0", "cpu>1ms", "memory>1GB", "connections>5", "requests>1", "p99>+10%"] {
            #expect(try end(other).code == 1, "\(other)")
        }
    }

    @Test func baseAndVariablesMayBeOthers() async throws {
        let file = try TemporaryFile(
            Array(
                #"{"base": "http://127.0.0.1:1", "variables": {"n": 1}, "requests": {"a": "/bytes/{{n}}"}, "run": "a"}"#
                    .utf8))
        try await withLoopbackServer { server in
            let line = ["bench", "--plan", file.path, "-n", "2", "-c", "1", "--base", server.baseURL, "--var", "n=7"]
            #expect(await Main.run(line) == .success)
            #expect(server.requests.map(\.target) == ["/bytes/7", "/bytes/7"])
        }
        for command in [["run", file.path], ["bench", "--plan", file.path]] {
            let end = try FerryProgram.run(command + ["--base", "127.0.0.1:1"])
            let words = "--base must be a URL that begins with http:// or https://, not '127.0.0.1:1'"
            #expect(end.code == 1 && end.output.contains(words), "\(end)")
        }
        #expect(await Main.run(["bench", "http://127.0.0.1:1/", "--base", "http://h"]) == .usage)
        #expect(await Main.run(["bench", "http://127.0.0.1:1/", "--var", "a=b"]) == .usage)
    }

    @Test func itEndsWithItsTime() async throws {
        let plan = try plan(#"{"requests": {"a": "/hello"}, "run": "a"}"#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-z", "0.2", "-c", "2"))
            #expect(summary.runs > 0 && summary.nanoseconds >= 200_000_000)
            #expect(summary.runs == UInt64(server.requestCount))
        }
    }

    @Test func theCacheHasItsPartInIt() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let plan = try plan(
            #"{"cache": {"dir": "\#(folder)"}, "requests": {"a": {"path": "/hello", "cache": {"ttl": 60}}}, "run": "a"}"#
        )
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let summary = await PlanBench.perform(start, try load("-n", "20", "-c", "1"))
            #expect(summary.totals.latencies.count == 20 && server.requestCount == 1)
        }
    }

    @Test func theObjectIsAsItsSchemaSays() async throws {
        let folder = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let path = folder + "/Sources/FerryCommand/Schemas/plan-bench-report.schema.json"
        let schema = try SchemaFile.schema(at: path)
        let described = try JSON(parsing: Data(contentsOf: URL(filePath: path)))["properties"]
        let plan = try plan(#"{"requests": {"a": "/hello", "gone": "/status/404"}, "run": {"chain": ["a", "gone"]}}"#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, base: server.baseURL)
            let load = try load("-n", "4", "-c", "2", "--fail-if", "failed>1")
            var summary = await PlanBench.perform(start, load)
            summary.judge(by: load.verdict)
            let json = try JSON(parsing: summary.json)
            try schema.check(json)
            for (name, _) in try #require(json.object) { #expect(described?[name] != nil, "\(name) is not described") }
        }
    }

    @Test func thePageHasChartsAndAllRequests() throws {
        let file = try TemporaryFile(
            Array(
                #"{"name": "<shop>", "requests": {"a": "/hello", "gone": "/status/404"}, "run": {"chain": ["a", "gone"]}}"#
                    .utf8))
        let good = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": {"batch": ["a", "a"]}}"#.utf8))
        func page(_ plan: TemporaryFile, _ code: Int32) throws -> String {
            let html = try TemporaryFile([])
            let end = try FerryProgram.run(
                "bench", "--plan", plan.path, "-n", "6", "-c", "2", "--html", html.path, "--fail-if", "max>60s")
            #expect(end.code == code, "\(end.output)")
            let page = try String(contentsOfFile: html.path, encoding: .utf8)
            #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
            #expect(page.count(where: { $0 == "<" }) == page.count(where: { $0 == ">" }))
            #expect(page.contains("<td>max&gt;60s</td>"))
            return page
        }
        let whole = try page(good, 0)
        #expect(whole.components(separatedBy: "<svg").count == 7 && whole.contains("<b class=\"good\">ok</b>"))
        #expect(whole.contains("<td>a</td><td data-head=\"runs\">12</td><td data-head=\"failed\">0</td>"))
        #expect(whole.contains("<i class=\"failed\">") && whole.contains("6 plans in "))
        let failed = try page(file, 5)
        #expect(failed.contains("&lt;shop&gt;") && !failed.contains("<shop>"))
        #expect(failed.contains("<p>No run of the plan was ok: 6 failed.</p>"))
        #expect(!failed.contains("percentiles</span>"), "a legend without a chart explains nothing")
        #expect(failed.contains("invalidStatusCode(404)") && failed.contains("<b class=\"bad\">failed</b>"))
    }

    @Test func theWindowsHoldAllRuns() async throws {
        let plan = try plan(#"{"requests": {"a": "/hello"}, "run": "a"}"#)
        try await withLoopbackServer { server in
            var windows = 0
            // On a busy machine all runs may end within one window.
            for seconds in ["0.3", "3", "20"] where windows < 2 {
                let summary = await PlanBench.perform(
                    try PlanStart(plan, base: server.baseURL), try load("-z", seconds, "-c", "2"))
                #expect(summary.windows.reduce(0) { $0 + $1.latencies.count } == summary.runs)
                windows = summary.windows.count
            }
            #expect(windows > 1)
        }
    }

    @Test func theCommandStartsAServerOfItsOwn() throws {
        let file = try TemporaryFile(
            Array(#"{"requests": {"a": "/hello", "b": "/bytes/10"}, "run": {"batch": ["a", "b"]}}"#.utf8))
        let end = try FerryProgram.run("bench", "--plan", file.path, "-n", "6", "-c", "2", "--json")
        #expect(end.code == 0, "\(end.output)")
        let json = try JSON(parsing: end.output)
        #expect(json["runs"]?.int == 6 && json["requests"]?.int == 12 && json["failed"]?.int == 0)
    }

    @Test(arguments: [
        (["--header", "A: b"], 1, "--plan and --header cannot be combined"),
        (["http://h/"], 1, "--plan and a URL ('http://h/') cannot be combined"),
        (["-n", "0"], 1, "--requests must be a whole number"),
    ]) func whatDoesNotGoWithAPlanIsSaid(_ more: [String], _ code: Int32, _ message: String) throws {
        let file = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": "a"}"#.utf8))
        let end = try FerryProgram.run(["bench", "--plan", file.path] + more)
        #expect(end.code == code && end.output.contains(message), "\(end.output)")
    }

    @Test func aBadPlanIsABadFile() throws {
        let file = try TemporaryFile(Array("{\"requests\": {},\n\"run\": \"a\"}".utf8))
        let end = try FerryProgram.run("bench", "--plan", file.path)
        #expect(
            end.code == 2 && end.output == "ferry bench: \(file.path):2: unknown request 'a'\n", "\(end.output)")
    }
}

import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `cache` in plan files.
@Suite(.timeLimit(.minutes(1))) struct PlanCacheTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path

    private func plan(_ text: String) throws -> Plan { try PlanSchema.plan(text) }

    /// Each with an agent of its own, like separate processes.
    private func perform(
        _ text: String, on server: LoopbackServer, values: [(name: String, value: String)] = []
    ) async throws -> PlanReport {
        let start = try PlanStart(plan(text), values: values, base: server.baseURL)
        return await withNetworkAgent(configuration: start.configuration) { await PlanRun(start).perform(by: $0) }
    }

    private func catalogue(_ policy: String, run: String = #"{"request": "a", "repeat": 2}"#) -> String {
        #"{"cache": {"dir": "\#(folder)"}, "requests": {"a": {"path": "/hello", "cache": {\#(policy)}}}, "run": \#(run)}"#
    }

    @Test func aRepeatIsAnsweredByTheFolder() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let first = try await perform(catalogue(#""ttl": 60"#), on: server)
            #expect(first.isOK && first.rows.map(\.isFromCache) == [false, true])
            #expect(first.rows.map(\.status) == [200, 200] && first.rows.map(\.attempts) == [1, 0])
            let second = try await perform(catalogue(#""ttl": 60"#), on: server)
            #expect(second.rows.map(\.isFromCache) == [true, true], "it outlives the agent")
            let other = try await perform(catalogue(#""ttl": 60, "version": 2"#), on: server)
            #expect(other.rows.map(\.isFromCache) == [false, true])
            let anew = try await perform(catalogue(#""ttl": 60, "version": 2, "mode": "reload""#), on: server)
            #expect(anew.rows.map(\.isFromCache) == [false, false])
            let whose = try await perform(catalogue(#""ttl": 60, "version": 2, "sensitiveData": "kim""#), on: server)
            #expect(whose.rows.map(\.isFromCache) == [false, true])
            #expect(server.requestCount == 5)
        }
    }

    @Test func theServerSaysHowLong() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/hello") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "{}") }
            for kind in ["private", "shared"] {
                let report = try await perform(catalogue(#""http": "\#(kind)""#), on: server)
                #expect(report.isOK && report.rows.map(\.isFromCache) == [false, true])
                #expect(report.rows.map(\.metrics?.cache) == [.miss, .hit])
            }
        }
        for policy in [#""http": "x""#, #""http": "private", "ttl": 1"#, #""http": "private", "version": 1"#, ""] {
            #expect(throws: (any Error).self) { try plan(catalogue(policy)) }
        }
    }

    @Test func theCommandLineCachesRequestsWithoutAPolicy() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = #"{"requests": {"a": {"path": "/hello"}}, "run": {"request": "a", "repeat": 2}}"#
        func start(_ line: [String], on base: String) throws -> PlanStart {
            try PlanStart(plan(text), base: base).cached(ParsedArguments(line, of: RunCommand.allOptions))
        }
        try await withLoopbackServer { server in
            server.handle("/hello") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "{}") }
            let lines: [(line: [String], hits: [Bool])] = [
                ([], [false, false]),
                // In memory, which ends with the agent.
                (["--http-cache"], [false, true]), (["--http-cache=private"], [false, true]),
                (["--http-cache=shared"], [false, true]),
                (["--http-cache", "--cache-dir", folder], [false, true]),
                (["--http-cache", "--cache-dir", folder], [true, true]),
            ]
            for (line, hits) in lines {
                let start = try start(line, on: server.baseURL)
                let report = await withNetworkAgent(configuration: start.configuration) { agent in
                    await PlanRun(start).perform(by: agent)
                }
                #expect(report.rows.map(\.isFromCache) == hits, "\(line)")
            }
        }
        for line in [["--cache-dir", folder], ["--http-cache=public"], ["--http-cache", "--cache-dir", ""]] {
            #expect(throws: UsageError.self) { try start(line, on: "http://127.0.0.1:1") }
        }
    }

    @Test func withoutItNothingIsKept() async throws {
        try await withLoopbackServer { server in
            let text = #"{"requests": {"a": "/hello"}, "run": {"request": "a", "repeat": 2}}"#
            let report = try await perform(text, on: server)
            #expect(
                report.rows.map(\.isFromCache) == [false, false] && report.rows.map(\.metrics?.cache) == [nil, nil])
            #expect(try JSON(parsing: report.json).value(atPointer: "/steps/0/cache")?.isNull == true)
        }
    }

    @Test func onlyNeverAsksTheNetwork() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let report = try await perform(catalogue(#""ttl": 60, "mode": "only""#, run: #""a""#), on: server)
            #expect(report.rows.first?.code?.name == "notCached" && report.exitCode == .transferFailed)
            #expect(server.requestCount == 0)
        }
    }

    @Test func whatIsNotAsExpectedIsNotKept() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            for _ in 0..<2 {
                let report = try await perform(
                    #"""
                    {"cache": {"dir": "\#(folder)"}, "requests":
                     {"a": {"path": "/hello", "expect": {"headers": {"X-Not": "there"}}, "cache": {"ttl": 60}}},
                     "run": "a"}
                    """#, on: server)
                #expect(report.rows.first?.code == .applicationError && report.rows.first?.isFromCache == false)
            }
            #expect(server.requestCount == 2)
        }
    }

    @Test func aHitBringsWhatIsCaptured() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/rates") { _ in LoopbackResponse(json: #"{"rate": 7}"#) }
            let text = #"""
                {"variables": {"where": "\#(folder)"}, "cache": {"dir": "{{where}}", "applicationVersion": "1"},
                 "requests": {
                  "rates": {"path": "/rates", "capture": {"rate": "/rate"}, "cache": {"ttl": 60, "write": "synchronous"}},
                  "use": {"path": "/echo", "query": {"rate": "{{rate}}"}, "expect": {"json": {"/path": "/echo?rate=7"}}}},
                 "run": {"chain": ["rates", "use"]}}
                """#
            _ = try await perform(text, on: server)
            let again = try await perform(text, on: server)
            #expect(again.rows.map(\.isFromCache) == [true, false])
            #expect(server.requests.filter { $0.path == "/rates" }.count == 1)
            #expect(server.requests.filter { $0.target == "/echo?rate=7" }.count == 2)
        }
    }

    @Test func anOldAnswerStandsInForAServerThatFails() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/hello") { _ in LoopbackResponse(status: server.requestCount <= 1 ? 200 : 503) }
            // A microsecond: it has expired whenever it is requested again.
            let report = try await perform(
                catalogue(#""ttl": 0.000001, "staleIfError": 3600"#), on: server)
            #expect(report.isOK && report.rows.map(\.cached) == ["no", "stale"], "\(report.table)")
            #expect(try JSON(parsing: report.json).value(atPointer: "/steps/1/cache")?.string == "stale")
        }
    }

    @Test func headersTellEntriesApart() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let report = try await perform(
                #"""
                {"cache": {"dir": "\#(folder)"}, "requests": {
                  "a": {"path": "/hello", "headers": {"X-Unit": "{{new.counter}}"}, "cache": {"ttl": 60, "headers": ["X-Unit"]}},
                  "b": {"path": "/hello", "headers": {"X-Unit": "{{new.counter}}"}, "cache": {"ttl": 60}}},
                 "run": {"chain": [{"request": "a", "repeat": 2}, {"request": "b", "repeat": 2}]}}
                """#, on: server)
            #expect(report.rows.map(\.isFromCache) == [false, false, false, true])
        }
    }

    @Test func allOutputsShowIt() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let report = try await perform(catalogue(#""ttl": 60"#), on: server)
            let lines = report.table.split(separator: "\n")
            #expect(!lines[1].hasSuffix("  cached") && lines[2].hasSuffix("  cached"), "\(report.table)")
            let json = try JSON(parsing: report.json)
            #expect(json.value(atPointer: "/steps/0/fromCache")?.bool == false)
            #expect(json.value(atPointer: "/steps/0/cache")?.string == "miss")
            #expect(json.value(atPointer: "/steps/1/fromCache")?.bool == true)
            #expect(json.value(atPointer: "/steps/1/cache")?.string == "hit")
            let page = PlanPage([report]).html
            #expect(page.contains("<td data-head=\"cached\">yes</td>") && page.contains("<rect class=\"cache\""))
            #expect(page.contains("a: 200, ") && page.contains(", from the cache"))
        }
    }

    @Test func theOutlineNamesIt() throws {
        let outline = PlanOutline(try plan(catalogue(#""ttl": 60"#))).text
        #expect(outline.contains(", responses stored in \(folder)\n"))
        #expect(outline.contains("a: GET /hello, kept for 60.0 seconds, expects 200-299"))
    }

    @Test func theExampleShowsHits() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(root)/Examples/prices.json", encoding: .utf8)
        try await withLoopbackServer { server in
            let first = try await perform(text, on: server, values: [("folder", folder)])
            #expect(
                first.isOK && first.rows.map(\.cached) == ["no", "yes", "yes", "yes", "no", "yes"], "\(first.table)")
            let again = try await perform(text, on: server, values: [("folder", folder)])
            #expect(again.rows.map(\.cached) == ["no", "yes", "yes", "yes", "yes", "yes"], "\(again.table)")
            #expect(server.requestCount == 3)
        }
    }

    @Test func aFolderWithoutANameIsAFault() throws {
        let plan = try plan(#"{"cache": {"dir": "{{env.FERRY_SURELY_NOT_SET|}}"}, "requests": {"a": "/"}, "run": "a"}"#)
        #expect(throws: InputError("p.json:1: the cache's 'dir' is empty")) { try PlanStart(plan) }
    }

    @Test(arguments: [
        ("\"cache\": 7,", "", "2: a plan's 'cache': expected an object"),
        ("\"cache\": {},", "", "2: 'cache' of a plan must have 'dir'"),
        ("\"cache\": {\"dir\": \"\"},", "", "2: dir: expected a folder"),
        ("\"cache\": {\"dir\": []},", "", "2: dir: expected a string"),
        ("\"cache\": {\"dir\": \"/{{b}}\"},", "", "2: '{{b}}' is not a variable"),
        ("\"cache\": {\"dir\": \"/x\",\n\"ttl\": 1},", "", "3: unknown member 'ttl' in a plan's 'cache'"),
        ("", "{\"ttl\": 1}", "4: 'cache' of a request requires 'cache' of the plan"),
        ("\"cache\": {\"dir\": \"/x\"},", "{}", "4: 'cache' of a request must have 'ttl'"),
        ("\"cache\": {\"dir\": \"/x\"},", "60", "4: a request's 'cache': expected an object"),
        ("\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 0}", "4: ttl: expected a number of seconds"),
        ("\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"version\": -1}", "4: version: expected a whole number"),
        ("\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1,\n\"version\": 1.5}", "5: version: expected a whole number"),
        (
            "\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"mode\": \"never\"}",
            "4: mode: expected else-network, reload or only"
        ),
        (
            "\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"write\": \"soon\"}",
            "4: write: expected asynchronous or synchronous"
        ),
        ("\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"headers\": \"A\"}", "4: headers: expected an array of names"),
        ("\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"headers\": [7]}", "4: headers: expected a string"),
        (
            "\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"time\": 7}",
            "4: unknown member 'time' in a request's 'cache'"
        ),
        (
            "\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"sensitiveData\": \"{{who}}\"}",
            "4: '{{who}}' is an unknown name"
        ),
        (
            "\"cache\": {\"dir\": \"/x\"},", "{\"ttl\": 1, \"mode\": \"only\",\n\"staleIfError\": 1}",
            "5: staleIfError and staleWhileRevalidate require the mode else-network"
        ),
    ]) func whatIsWrongIsSaidWithItsLine(_ ofPlan: String, _ ofRequest: String, _ expected: String) throws {
        let policy = ofRequest.isEmpty ? "" : "\n, \"cache\": \(ofRequest)"
        let text = "{\n\(ofPlan)\n\"requests\": {\"a\": {\"path\": \"/\"\(policy)}}, \"run\": \"a\"}"
        do {
            _ = try plan(text)
            Issue.record("it was taken")
        } catch let error as InputError {
            #expect(error.message.hasPrefix("p.json:" + expected), "\(error.message)")
        }
    }

    @Test func theCommandEndsWithTwo() throws {
        let file = try TemporaryFile(
            Array(
                "{\"cache\": {\"dir\": \"/x\"},\n\"requests\": {\"a\": {\"path\": \"/\", \"cache\": {\"ttl\": \"long\"}}}, \"run\": \"a\"}"
                    .utf8))
        let end = try FerryProgram.run("run", file.path)
        #expect(end.code == 2)
        #expect(end.output == "ferry run: \(file.path):2: ttl: expected a number of seconds\n")
    }
}

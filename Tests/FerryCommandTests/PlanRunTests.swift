import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

@Suite(.timeLimit(.minutes(1))) struct PlanRunTests {
    private func perform(
        _ text: String, values: [(name: String, value: String)] = [], prepare: (LoopbackServer) -> Void = { _ in }
    ) async throws -> (PlanReport, [LoopbackRequest]) {
        let plan = try PlanSchema.plan(text)
        return try await withLoopbackServer { server in
            prepare(server)
            let start = try PlanStart(plan, values: values, base: server.baseURL)
            let report = await withNetworkAgent(configuration: start.configuration) {
                await PlanRun(start).perform(by: $0)
            }
            return (report, server.requests)
        }
    }

    @Test func laterStepsUseWhatEarlierOnesBrought() async throws {
        let (report, requests) = try await perform(
            """
            {"variables": {"user": "kim"}, "requests": {
              "login": {"path": "/login", "form": {"user": "{{user}}"}, "capture": {"token": "/token"}},
              "me": {"path": "/users/{{login.json.user.id}}", "bearer": "{{token}}", "query": {"s": "{{login.status}}"}},
              "note": {"path": "/echo", "json": {"id": "{{login.json.user.id}}", "type": "{{login.headers.Content-Type}}"}}},
             "run": {"chain": ["login", {"batch": ["me", "note"]}]}}
            """, values: [("user", "lou")]
        ) { server in
            server.handle("/login") { _ in LoopbackResponse(json: #"{"token": "t0k", "user": {"id": 7}}"#) }
            server.handle("/users/7") { _ in LoopbackResponse() }
        }
        #expect(report.isOK && report.exitCode == .success)
        #expect(report.rows.map(\.name) == ["login", "me", "note"])
        #expect(report.rows.allSatisfy { $0.status == 200 && $0.attempts == 1 && $0.nanoseconds > 0 })
        #expect(requests[0].text == "user=lou")
        let me = try #require(requests.first { $0.path == "/users/7" })
        #expect(me.target == "/users/7?s=200")
        #expect(me.headers["Authorization"] == "Bearer t0k")
        #expect(requests.first { $0.path == "/echo" }?.text == #"{"id":7,"type":"application/json"}"#)
    }

    @Test func aQueryStandsBeforeTheFragmentAndAfterAnother() async throws {
        let (report, requests) = try await perform(
            """
            {"requests": {"top": {"path": "/echo#top", "query": {"a": "b c"}},
                          "more": {"path": "/echo?x=1&#top", "query": {"a": "b"}}}, "run": {"chain": ["top", "more"]}}
            """)
        #expect(report.isOK)
        #expect(requests.map(\.target) == ["/echo?a=b%20c", "/echo?x=1&a=b"])
    }

    @Test(arguments: [
        (#""expect": {"status": 201}"#, ExitCode.statusNotAccepted, "invalidStatusCode"),
        (#""expect": {"headers": {"Content-Type": "text/plain"}}"#, .validationFailed, "applicationError"),
        (#""expect": {"json": {"/a": 2}}"#, .validationFailed, "applicationError"),
        (#""expect": {"schema": {"type": "array"}}"#, .validationFailed, "schemaMismatch"),
        (#""capture": {"x": "/nothing"}"#, .validationFailed, "applicationError"),
        (#""query": {"x": "{{a.json.nothing}}"}"#, .validationFailed, "applicationError"),
    ])
    func whatIsNotAsExpectedEndsThePlan(_ member: String, _ code: ExitCode, _ name: String) async throws {
        let (report, requests) = try await perform(
            """
            {"requests": {"a": "/a", "b": {"path": "/a", \(member)}, "c": "/a"}, "run": {"chain": ["a", "b", "c"]}}
            """
        ) { $0.handle("/a") { _ in LoopbackResponse(json: #"{"a": 1}"#) } }
        #expect(report.exitCode == code)
        #expect(report.rows.map(\.state) == [.finished, .failed, .skipped])
        #expect(report.rows[1].code?.name == name)
        #expect(report.rows[1].message?.isEmpty == false)
        #expect(requests.count == (member.contains("query") ? 1 : 2))
    }

    @Test func aFailureCancelsTheRestUnlessAllAreCollected() async throws {
        func plan(_ more: String) -> String {
            """
            {"requests": {"bad": "/status/500", "slow": "/delay/\(more.isEmpty ? 60000 : 20)"},
             "run": {"chain": [{"batch": ["slow", "slow", "bad"]\(more)}, "slow"]}}
            """
        }
        let (failed, _) = try await perform(plan(""))
        #expect(failed.rows.map(\.state) == [.cancelled, .cancelled, .failed, .skipped])
        #expect(failed.exitCode == .statusNotAccepted)
        let (collected, _) = try await perform(plan(", \"collect\": true"))
        #expect(collected.rows.map(\.state) == [.finished, .finished, .failed, .finished])
        #expect(collected.exitCode == .statusNotAccepted)
    }

    @Test func repeatsRetriesAndDeadlines() async throws {
        let (report, requests) = try await perform(
            """
            {"requests": {"a": {"path": "/a/{{new.counter}}", "retries": 3}, "slow": "/delay/60000"},
             "run": {"chain": [{"request": "a", "repeat": 3}, {"batch": ["slow"], "deadline": 0.1}]}}
            """
        ) { server in
            server.handle("/a/2") { _ in LoopbackResponse(status: server.requestCount < 4 ? 503 : 200) }
            server.handle("/a/1") { _ in LoopbackResponse() }
            server.handle("/a/3") { _ in LoopbackResponse() }
        }
        #expect(report.rows.map(\.state) == [.finished, .finished, .finished, .failed])
        #expect(report.rows[1].attempts > 1)
        // Those of the last attempt would not fill the time of the run.
        #expect(PlanPhase.times(of: report.rows[1]).isEmpty && !PlanPhase.times(of: report.rows[0]).isEmpty)
        #expect(report.rows[3].code == .timeout(.deadline))
        #expect(report.exitCode == .transferFailed)
        #expect(requests.first?.path == "/a/1")
    }

    @Test func aCaptureFromWhatIsNoJSONNamesItsVariable() async throws {
        let (report, _) = try await perform(
            #"{"requests": {"a": {"path": "/hello", "capture": {"t": "/x"}}}, "run": "a"}"#)
        #expect(report.rows[0].code == .invalidJSON && report.exitCode == .validationFailed)
        let text = "cannot capture 't': the body is not JSON, at byte 0: unexpected character or end"
        #expect(report.rows[0].fault == text)
    }

    @Test func reportsAreJSONAndATable() async throws {
        let (report, _) = try await perform(
            #"{"name": "r", "requests": {"a": "/hello", "b": "/status/404"}, "run": {"chain": ["a", "b", "a"]}}"#)
        let json = try JSON(parsing: report.json)
        #expect(json["ok"]?.bool == false && json["plan"]?.string == "r")
        let steps = try #require(json["steps"]?.array)
        #expect(steps.map { $0["state"]?.string } == ["finished", "failed", "skipped"])
        #expect(steps.map { $0["status"]?.int } == [200, 404, nil])
        #expect(json.value(atPointer: "/steps/1/error/code")?.string == "invalidStatusCode")
        let message = json.value(atPointer: "/steps/1/error/message")?.string
        #expect(message == "expected status 200-299, found 404")
        #expect((json.value(atPointer: "/steps/0/metrics/total")?.int ?? 0) > 0)
        let lines = report.table.split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines[1].hasPrefix("  a") && lines[1].contains("200"))
        #expect(lines[3] == "      expected status 200-299, found 404")
        #expect(lines[4].hasSuffix("skipped: 'b' failed"))
        #expect(steps.map { $0["reason"]?.string } == [nil, nil, "'b' failed"])
        #expect(lines[5].hasPrefix("FAILED: r, 1 of 3 steps"))
    }

    @Test func thePageIsWholeAndEscaped() async throws {
        let (report, _) = try await perform(
            #"{"name": "<b>&\"", "requests": {"<script>": "/hello", "b": "/status/404"}, "run": {"chain": ["<script>", "b", "b"]}}"#
        )
        let page = PlanPage([report]).html
        #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
        #expect(!page.contains("<script>") && page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;&amp;&quot;"))
        #expect(!page.contains("http://") && !page.contains("https://"), "it needs nothing else")
        #expect(
            page.contains("<svg") && page.contains("class=\"wait\"") && page.contains("skipped: &#39;b&#39; failed"))
        #expect(page.contains("<tr class=\"fault\"><td colspan=\"10\">expected status 200-299, found 404</td></tr>"))
        #expect(page.count(where: { $0 == "<" }) == page.count(where: { $0 == ">" }))
        #expect(!page.contains("min-width:") && !page.contains("overflow-x"), "a narrow window cuts nothing")
        for color in PlanPhase.allCases.map(\.rawValue) + ["cache", "other", "bad"] {
            #expect(page.contains("<i class=\"\(color)\">"), "no swatch of \(color)")
            #expect(
                page.components(separatedBy: "--\(color): #").count == 3, "\(color) is not there for light and dark")
        }
    }

    @Test func theTicksOfAWaterfallAreRound() {
        var row = PlanRow(name: "a", depth: 1)
        (row.state, row.end) = (.finished, 37_300_000)
        let page = PlanPage([PlanReport(name: "p", rows: [row], nanoseconds: row.end)]).html
        for tick in ["0 µs", "10 ms", "20 ms", "30 ms"] { #expect(page.contains(">\(tick)</text>"), "\(tick)") }
        #expect(!page.contains(">9.3 ms</text>"))
    }

    @Test func theLiveLineSaysWhatRuns() {
        var rows = ["a", "b", "c", "d"].map { PlanRow(name: $0, depth: 1) }
        rows[0].state = .finished
        rows[1].state = .running
        func line(_ nanoseconds: UInt64) -> String {
            PlanLiveLine.line("p", PlanProgress(rows), nanoseconds: nanoseconds, columns: 79)
        }
        #expect(line(1_500_000_000) == "p  █████░░░░░░░░░░░░░░░  1 of 4  1.5 s  b")
        for row in rows.indices { rows[row].state = .running }
        #expect(line(0).hasSuffix("a, b, c and 1 more"))
        #expect(PlanLiveLine.line("p", PlanProgress([]), nanoseconds: 0, columns: 79).contains("0 of 0"))
    }

    @Test(arguments: [1, 20, 39, 79, 200]) func theLiveLineFitsTheTerminal(columns: Int) {
        var rows = (1...3).map { PlanRow(name: "日本\n\u{9B}\(String(repeating: "x", count: 9 * $0))", depth: 1) }
        for row in rows.indices { rows[row].state = .running }
        let path = "/a/long/path/of\u{1B}[31m/" + String(repeating: "plan", count: 40) + ".json"
        let line = PlanLiveLine.line(path, PlanProgress(rows), nanoseconds: 0, columns: columns)
        #expect(TerminalText.width(line) <= columns)
        #expect(line.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        // The progress matters more than the whole name.
        #expect(columns < 79 || line.contains("0 of 3"))
    }

    @Test func theExamplesRun() async throws {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let files = try FileManager.default.contentsOfDirectory(atPath: "/\(folder)/Examples").filter {
            $0.hasSuffix(".json")
        }
        #expect(files.count >= 4)
        for file in files {
            let text = try String(contentsOfFile: "/\(folder)/Examples/\(file)", encoding: .utf8)
            let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let (report, _) = try await perform(text, values: [("folder", folder)])
            #expect(report.isOK, "\(report.table)")
        }
    }

    @Test func theOutlineSaysWhatWouldBeDone() throws {
        let plan = try PlanSchema.plan(
            #"{"name": "o", "base": "http://h", "requests": {"a": {"path": "/x/{{new.counter}}", "json": {}, "retries": 1}}, "run": {"batch": ["a", {"request": "a", "repeat": 2}], "atMost": 2, "deadline": 1}}"#
        )
        #expect(
            PlanOutline(plan).text == """
                o, 3 steps, on http://h
                  batch, at most 2 at once, within 1.0 seconds
                    a: POST /x/{{new.counter}}, with a body, up to 1 retries, expects 200-299
                    2 times
                      a: POST /x/{{new.counter}}, with a body, up to 1 retries, expects 200-299

                """)
    }
}

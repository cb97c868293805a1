import Ferry
import FerryTesting
import Testing

@testable import FerryCommand

/// The table of `ferry run`: its width, and its reports of failures.
@Suite(.timeLimit(.minutes(1))) struct PlanTableTests {
    private func row(_ name: String, depth: Int = 1) -> PlanRow {
        var row = PlanRow(name: name, depth: depth)
        (row.state, row.status, row.end, row.isFromCache) = (.finished, 200, 123_456_789, true)
        return row
    }

    private func lines(_ rows: [PlanRow], columns: Int, name: String = "plan") -> [String] {
        PlanReport(name: name, rows: rows, nanoseconds: 1).table(columns: columns).split(separator: "\n").map(
            String.init)
    }

    @Test func aNarrowTerminalHasFewerPhases() {
        var plain = row("a-name-of-some-length")
        plain.isFromCache = false
        func head(_ columns: Int) -> [Substring] { lines([plain], columns: columns)[0].split(separator: " ") }
        #expect(head(80).suffix(5) == ["total", "queue", "connect", "wait", "body"])
        #expect(head(60).suffix(3) == ["connect", "wait", "body"] || head(60).suffix(3) == ["total", "wait", "body"])
        #expect(lines([plain], columns: 40).allSatisfy { TerminalText.width($0) <= 40 })
    }

    @Test(arguments: [80, 100, 200]) func noLineIsWiderThanTheTerminal(columns: Int) {
        var failed = row("日本語" + String(repeating: "x", count: 60))
        failed.state = .failed
        failed.explanation = String(repeating: "expected this and that ", count: 20)
        var skipped = row("deep", depth: 9)
        skipped.state = .skipped
        skipped.reason = String(repeating: "'one' failed, ", count: 20)
        let lines = lines(
            [row("a"), row("a-name-that-is-rather-long"), failed, skipped], columns: columns,
            name: String(repeating: "plan ", count: 30))
        #expect(lines.allSatisfy { TerminalText.width($0) <= columns }, "\(lines)")
        let text = lines.joined(separator: "\n")
        #expect(text.contains("xxxxxxxxxx\n") == (columns < 140), "a long name has a line of its own where it must")
        #expect(text.contains("a-name-that-is-rather-long"))
    }

    @Test func theColumnOfStatesIsAsWideAsTheLongest() {
        var cancelled = row("b")
        (cancelled.state, cancelled.status, cancelled.isFromCache) = (.cancelled, nil, false)
        let lines = lines([row("a"), cancelled], columns: 80)
        #expect(lines[0] == "step  status       total    queue  connect     wait     body")
        #expect(lines[1] == "  a   200         123 ms        –        –        –        –  cached")
        #expect(lines[2] == "  b   cancelled   123 ms        –        –        –        –")
    }

    @Test func defaultValuesAreOmitted() {
        var plain = row("b")
        plain.isFromCache = false
        let lines = lines([row("a"), plain], columns: 80)
        #expect(lines[0] == "step  status    total    queue  connect     wait     body")
        #expect(lines[1] == "  a   200      123 ms        –        –        –        –  cached")
        #expect(lines[2] == "  b   200      123 ms        –        –        –        –")
    }

    @Test(arguments: [
        (#""expect": {"status": [201, "300-302"]}"#, "expected status 201, 300-302, found 200"),
        (#""expect": {"headers": {"X-A": "a*"}}"#, "expected header X-A 'a*', found none"),
        (#""expect": {"headers": {"Content-Type": "text/plain"}}"#, "expected header Content-Type 'text/plain', found"),
        (#""expect": {"json": {"/a": 2}}"#, "expected 2 at /a, found 1"),
        (#""expect": {"json": {"/b": null}}"#, "expected null at /b, found nothing"),
        (#""expect": {"schema": {"type": "array"}}"#, "the body does not match the schema: $: expected array, found"),
        (#""capture": {"x": "/nothing"}"#, "cannot capture 'x': the body has nothing at /nothing"),
        (#""query": {"x": "{{none.json.b}}"}"#, "'{{none.json.b}}' has no value"),
    ]) func aFailureNamesTheExpectation(_ member: String, _ message: String) async throws {
        let plan = try PlanSchema.plan(
            #"{"requests": {"none": "/a", "b": {"path": "/a", \#(member)}}, "run": {"chain": ["none", "b"]}}"#)
        let report = try await withLoopbackServer { server in
            server.handle("/a") { _ in LoopbackResponse(json: #"{"a": 1}"#) }
            let start = try PlanStart(plan, base: server.baseURL)
            return await withNetworkAgent(configuration: start.configuration) { await PlanRun(start).perform(by: $0) }
        }
        #expect(report.rows[1].fault?.hasPrefix(message) == true, "\(report.rows[1].fault ?? "none")")
        #expect(report.table.contains("\n        " + message), "\(report.table)")
    }

    @Test(arguments: [("", "is empty"), ("no", "is not JSON")])
    func aBodyThatIsNotJSONIsReportedWithTheExpectation(_ body: String, _ words: String) async throws {
        let plan = try PlanSchema.plan(
            #"""
            {"requests": {"e": {"path": "/b", "expect": {"json": {"/a": 1}}}, "c": {"path": "/b", "capture": {"x": "/a"}}},
             "run": {"batch": ["e", "c"], "collect": true}}
            """#)
        let report = try await withLoopbackServer { server in
            server.handle("/b") { _ in LoopbackResponse(body: Array(body.utf8)) }
            let start = try PlanStart(plan, base: server.baseURL)
            return await withNetworkAgent(configuration: start.configuration) { await PlanRun(start).perform(by: $0) }
        }
        #expect(report.rows.map(\.fault).map { $0?.contains(words) } == [true, true], "\(report.table)")
        #expect(report.rows[0].fault?.contains("expected 1 at /a: the body") == true, "\(report.table)")
        #expect(report.rows[1].fault?.contains("cannot capture 'x': the body") == true, "\(report.table)")
        #expect(report.exitCode == .validationFailed)
    }
}

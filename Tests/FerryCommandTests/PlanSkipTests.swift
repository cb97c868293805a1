import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// A step that never started reports why.
@Suite(.timeLimit(.minutes(1))) struct PlanSkipTests {
    private func perform(_ run: String) async throws -> PlanReport {
        try await withLoopbackServer { try await perform(run, at: $0) }
    }

    private func perform(_ run: String, at server: LoopbackServer) async throws -> PlanReport {
        let plan = try PlanSchema.plan(
            #"""
            {"requests": {"bad": "/status/500", "slow": "/delay/60000", "quick": "/hello"}, "run": \#(run)}
            """#)
        let start = try PlanStart(plan, base: server.baseURL)
        return await withNetworkAgent(configuration: start.configuration, grace: .zero) {
            await PlanRun(start).perform(by: $0)
        }
    }

    @Test(arguments: [
        (
            #"{"batch": ["slow", "quick", {"chain": ["quick"]}], "atMost": 1, "deadline": 0.15}"#,
            ["the batch's deadline of 150 ms had passed", "the batch's deadline of 150 ms had passed"]
        ),
        (
            #"{"chain": [{"batch": ["slow", "quick"], "atMost": 1}, "quick"], "deadline": 0.15}"#,
            ["the chain's deadline of 150 ms had passed", "the chain's deadline of 150 ms had passed"]
        ),
        (
            #"{"chain": [{"chain": ["slow", "quick"], "deadline": 0.15}, "quick"]}"#,
            ["the chain's deadline of 150 ms had passed", "'slow' failed"]
        ),
        (
            #"{"chain": ["quick", "bad", "quick", {"batch": ["quick"], "deadline": 9}]}"#,
            ["'bad' failed", "'bad' failed"]
        ),
        (#"{"batch": ["bad", "quick", "quick"], "atMost": 1}"#, ["'bad' failed", "'bad' failed"]),
        (#"{"batch": [{"chain": ["bad", "quick"]}, "quick"], "collect": true}"#, ["'bad' failed"]),
        (
            #"{"batch": [{"chain": ["bad", "quick"]}, {"chain": ["slow", "quick"]}], "collect": true, "deadline": 0.15}"#,
            ["'bad' failed", "the batch's deadline of 150 ms had passed"]
        ),
        (#"{"request": "bad", "repeat": 3}"#, ["'bad' failed", "'bad' failed"]),
    ]) func whatEndedItIsSaid(_ run: String, _ reasons: [String]) async throws {
        let report = try await perform(run)
        let skipped = report.rows.filter { $0.state == .skipped }
        #expect(skipped.map(\.reason) == reasons, "\(report.table)")
        #expect(report.rows.allSatisfy { $0.state == .skipped || $0.reason == nil })
    }

    /// The failure comes when the chain has begun.
    @Test func aFailureBesideAChainIsSaid() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/status/500",
                [
                    .expectHead, .wait("the chain has begun"),
                    .send("HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close,
                ])
            async let performed = perform(#"{"batch": ["bad", {"chain": ["slow", "quick"]}]}"#, at: server)
            try await server.waitForRequests(2)
            server.signal("the chain has begun")
            let report = try await performed
            let skipped = report.rows.filter { $0.state == .skipped }
            #expect(skipped.map(\.reason) == ["'bad' failed"] && skipped.map(\.name) == ["quick"], "\(report.table)")
        }
    }

    @Test func theTableTheObjectAndThePageSayIt() async throws {
        let report = try await perform(#"{"batch": ["slow", "quick"], "atMost": 1, "deadline": 0.15}"#)
        #expect(report.rows.map(\.state) == [.failed, .skipped])
        let words = "the batch's deadline of 150 ms had passed"
        #expect(report.table.contains("  quick  skipped: \(words)\n"), "\(report.table)")
        let json = try JSON(parsing: report.json)
        #expect(json.value(atPointer: "/steps/1/reason")?.string == words)
        #expect(json.value(atPointer: "/steps/0/reason")?.isNull == true)
        let page = PlanPage([report]).html
        #expect(page.components(separatedBy: "skipped: the batch&#39;s deadline of 150 ms had passed").count == 4)
    }

    @Test func aRunThatIsCancelledSaysSo() async throws {
        let stub = StubTransport(always: .hold)
        let plan = try PlanSchema.plan(#"{"requests": {"a": "/a"}, "run": {"chain": ["a", "a", {"batch": ["a"]}]}}"#)
        let start = try PlanStart(plan, base: "http://h")
        let task = Task {
            await PlanRun(start).perform(by: NetworkAgent(configuration: start.configuration, stub: stub))
        }
        await stub.waitForHeld(1)
        task.cancel()
        let report = await task.value
        #expect(report.rows.map(\.state) == [.cancelled, .skipped, .skipped])
        #expect(report.rows.map(\.reason) == [nil, "the run was cancelled", "the run was cancelled"])
    }
}

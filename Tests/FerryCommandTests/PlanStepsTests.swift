import FerryTesting
import Testing

@testable import Ferry
@testable import FerryCommand

/// Making a long plan costs no more than running it. The tests count links of chains, each of which would be copied
/// with all links before it.
@Suite(.timeLimit(.minutes(2))) struct PlanStepsTests {
    /// How many links are made from a plan's root before it runs.
    private func links(_ root: PlanNode) throws -> Int {
        var plan = try PlanSchema.plan(#"{"requests": {"a": "/"}, "run": "a"}"#)
        plan.root = root
        let start = try PlanStart(plan)
        let steps = PlanSteps(plan: plan, state: start.state, recorder: PlanRecorder(root))
        guard case .links(let links, _) = steps.chain(root, row: 0).groupMember.member.content else {
            Issue.record("no chain by itself")
            return 0
        }
        return links.links.count
    }

    @Test(arguments: [1, 10, 20_000]) func roundsAreMadeWhenTheirTurnComes(_ times: Int) throws {
        #expect(try links(PlanNode(.repeated(PlanNode(.request("a")), times))) == 2)
        let request = PlanNode(.request("a"))
        #expect(try links(PlanNode(.chain(Array(repeating: request, count: times), deadline: nil))) == 2)
    }

    @Test func manyRoundsEnd() async throws {
        let stub = StubTransport(always: .response(body: "x"))
        let plan = try PlanSchema.plan(
            #"{"requests": {"a": "/{{new.counter}}"}, "run": {"request": "a", "repeat": 20000}}"#)
        let start = try PlanStart(plan, base: "http://h")
        let report = await PlanRun(start).perform(by: NetworkAgent(configuration: start.configuration, stub: stub))
        #expect(report.isOK && report.rows.count == 20_000)
        let requests = stub.requests
        #expect(requests.count == 20_000)
        #expect(requests.first?.url == "http://h/1" && requests.last?.url == "http://h/20000")
    }

    @Test func rowsAreFilledInTheOrderOfThePlan() async throws {
        let stub = StubTransport { request in .response(body: request.url) }
        let plan = try PlanSchema.plan(
            #"""
            {"requests": {"a": "/a", "b": "/b", "c": {"path": "/c", "retries": 0}},
             "run": {"chain": [
               {"chain": ["a", {"batch": ["b", "c"]}], "repeat": 2},
               {"batch": [{"request": "b", "repeat": 2}, {"chain": ["c", "a"], "deadline": 60}], "collect": true},
               "b"], "deadline": 60, "repeat": 2}}
            """#)
        let start = try PlanStart(plan, base: "http://h")
        let report = await PlanRun(start).perform(by: NetworkAgent(configuration: start.configuration, stub: stub))
        #expect(report.isOK, "\(report.table)")
        let round = ["a", "b", "c", "a", "b", "c", "b", "b", "c", "a", "b"]
        #expect(report.rows.map(\.name) == round + round)
        #expect(stub.requests.count == 22)
        for (row, next) in zip(report.rows, report.rows.dropFirst()) where next.depth <= row.depth && next.name == "a" {
            #expect(row.end <= next.start)
        }
    }

    @Test func aBatchOfManyEnds() async throws {
        let stub = StubTransport(always: .response(body: "x"))
        let names = Array(repeating: #""a""#, count: 5000).joined(separator: ",")
        let plan = try PlanSchema.plan(
            #"{"requests": {"a": "/a"}, "run": {"chain": [{"batch": [\#(names)], "atMost": 8}, \#(names)]}}"#)
        let start = try PlanStart(plan, base: "http://h")
        let report = await PlanRun(start).perform(by: NetworkAgent(configuration: start.configuration, stub: stub))
        #expect(report.isOK && stub.requests.count == 10_000)
    }
}

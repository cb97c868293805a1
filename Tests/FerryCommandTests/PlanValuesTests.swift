import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// In one run of a plan each variable has one value everywhere.
@Suite(.timeLimit(.minutes(1))) struct PlanValuesTests {
    private let text = #"""
        {"variables": {"id": "{{new.uuid}}", "host": "{{id}}.test", "own": "{{new.uuid}}"},
         "base": "http://{{host}}", "cache": {"dir": "{{folder}}/{{id}}"},
         "requests": {"a": {"path": "/", "headers": {"X-Id": "{{id}}", "X-Host": "{{host}}", "X-Own": "{{own}}"}}},
         "run": {"request": "a", "repeat": 2}}
        """#

    private func start() throws -> PlanStart {
        let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path
        let variables = #""variables": {"folder": "\#(folder)", "#
        return try PlanStart(PlanSchema.plan(text.replacing(#""variables": {"#, with: variables)))
    }

    private func perform(_ start: PlanStart) async throws -> [StubTransport.Request] {
        let stub = StubTransport(always: .response())
        var configuration = start.configuration
        configuration.cache = nil
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        #expect(await PlanRun(start).perform(by: agent).isOK)
        return stub.requests
    }

    @Test func theBaseTheCacheAndHeadersHaveTheSame() async throws {
        let start = try start()
        let requests = try await perform(start)
        #expect(requests.count == 2)
        for request in requests {
            let id = try #require(request.headers["X-Id"])
            #expect(id.count == 36 && request.headers["X-Host"] == id + ".test")
            #expect(request.url == "http://\(id).test/")
            #expect(start.configuration.cache?.directory.hasSuffix("/" + id) == true)
        }
        #expect(requests[0].headers["X-Own"] == requests[1].headers["X-Own"])
    }

    /// All runs of a plan's load share one agent, and so one base URL.
    @Test func anotherRunHasItsOwnButForWhatTheAgentWasMadeWith() async throws {
        let start = try start()
        let first = try await perform(start)
        let second = try await perform(start.again())
        let requests = first + second
        #expect(Set(requests.map(\.url)).count == 1)
        #expect(Set(requests.compactMap { $0.headers["X-Id"] }).count == 1)
        #expect(Set(requests.compactMap { $0.headers["X-Own"] }).count == 2)
    }

    @Test func aGivenValueHasTheKindOfThePlans() throws {
        let plan = try PlanSchema.plan(
            #"""
            {"variables": {"n": 5, "b": true, "s": "5", "z": null, "own": "{{n}}"}, "requests": {"a": "/{{free|x}}"},
             "run": "a"}
            """#)
        func values(_ given: (String, String)...) throws -> [String: JSON] {
            try PlanStart(plan, values: given.map { (name: $0, value: $1) }).state.values(
                of: ["n", "b", "s", "z", "own", "free"])
        }
        let made = try values(("n", "6.5"), ("b", "false"), ("s", "7"), ("z", "8"), ("free", "9"))
        #expect(made == ["n": 6.5, "own": 6.5, "b": false, "s": "7", "z": "8", "free": "9"])
        // The text must stay the same.
        for text in ["x", "1.10", "1e3", "-0", "042409", "123456789012345678901234567890", "\"6\"", "true"] {
            #expect(try values(("n", text))["n"] == JSON(text))
        }
        #expect(try values(("b", "1"))["b"] == "1")
    }

    @Test func aLoadOfPlansMakesThemAnewForEachRun() async throws {
        let plan = try PlanSchema.plan(
            #"""
            {"variables": {"host": "unknown", "id": "{{new.uuid}}"}, "base": "{{host}}",
             "requests": {"a": {"path": "/hello", "query": {"id": "{{id}}"}}}, "run": {"batch": ["a", "a"]}}
            """#)
        try await withLoopbackServer { server in
            let start = try PlanStart(plan, values: [("host", server.baseURL)])
            let load = try BenchPlan(ParsedArguments(["-n", "5", "-c", "2"], of: BenchCommand.allOptions))
            let summary = await PlanBench.perform(start, load)
            #expect(summary.totals.failed == 0 && server.requestCount == 10)
            let targets = Dictionary(grouping: server.requests, by: \.target)
            #expect(targets.count == 5 && targets.values.allSatisfy { $0.count == 2 })
        }
    }
}

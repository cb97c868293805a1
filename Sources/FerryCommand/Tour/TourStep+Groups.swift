internal import Ferry
internal import FoundationEssentials

extension TourStep {
    /// GET of a path that waits so many milliseconds; the value is its number.
    private struct Late: Request {
        typealias Value = Int
        let milliseconds: Int
        var path: String { "/delay/\(milliseconds)" }
        func value(from response: Response) throws -> Int { milliseconds }
    }

    static let batch = TourStep("a batch") { agent in
        let (first, second, others) = try await agent.send(
            batch: Late(milliseconds: 30), Late(milliseconds: 20), BatchRequest((1...10).map(Late.init), atMost: 4))
        try expect(first == 30 && second == 20 && others == Array(1...10), "the values are not in order")
        return "two and ten at once, four of the ten at a time, values typed and in order"
    }

    static let chain = TourStep("a chain") { agent in
        let value = try await agent.send(
            ChainRequest(Late(milliseconds: 1))
                .then { BatchRequest(Late(milliseconds: $0 + 1), Late(milliseconds: $0 + 2)) }
                .then { b, c in Late(milliseconds: b + c) })
        try expect(value == 5, "it came to \(value)")
        return "A, then B and C at once, then D of what they brought"
    }

    static let plan = TourStep("a plan") { agent in
        let text = """
            {
              "name": "tour",
              "requests": {
                "user": {"path": "/users/7", "capture": {"nick": "/nick"}, "expect": {"json": {"/level": 3}}},
                "echo": {"path": "/echo", "json": {"hello": "{{nick}}", "level": "{{user.json.level}}"}},
                "late": "/delay/10"
              },
              "run": {"chain": ["user", {"batch": ["echo", {"request": "late", "repeat": 2}]}]}
            }
            """
        let plan = try PlanReader(path: "tour", text: Data(text.utf8)).plan()
        let report = try await PlanRun(PlanStart(plan)).perform(by: agent)
        try expect(report.isOK, report.table)
        return "\(report.finished) requests from a file's text, as `ferry run` runs them"
    }
}

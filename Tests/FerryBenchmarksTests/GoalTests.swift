import Testing

@testable import FerryBenchmarks

@Suite struct GoalTests {
    /// One request that took this many microseconds.
    private func measurement(cpu: Double, extra: [String: Double] = [:]) -> Measurement {
        var measurement = Measurement()
        measurement.ok = 1
        measurement.userTime = cpu
        measurement.extra = extra
        return measurement
    }

    @Test(arguments: [
        ("12 bytes, 64 at once, await: CPU × the bare client", 1.25, true), ("URLSession: CPU × await", 15, false),
        ("tasks on the loop's executor: CPU × the bare client", 1.1, true),
        ("closures on a queue: CPU × await", 1.2, true), ("1,000 at once, await: CPU × 64 at once", 1.2, true),
        ("10,000 at once, await: CPU × 64 at once", 1.2, true),
        ("100,000 waiting, closures: memory of each", 2048, true),
        ("64 KB, 64 at once, await: CPU × the bare client", 1.25, true),
        ("GET of 2 KB of JSON, a schema: CPU × bytes", 1.15, true),
        ("GET of 2 KB of JSON, JSONConvertible: CPU × bytes", 1.4, true),
        ("GET of 2 KB of JSON, Codable: CPU × bytes", 1.8, true),
        ("JSON of 2 KB, schema checked: × faster than JSONDecoder", 25, false),
        ("JSON of 2 KB, JSONConvertible: × faster than JSONDecoder", 15, false),
        ("JSON of 2 KB, FerryJSONDecoder: × faster than JSONDecoder", 5, false),
        ("cache hits from memory, 2 KB with schema", 300_000, false), ("cache hits from the disk", 60_000, false),
        ("cache writes of 2 KB", 30_000, false),
        ("a request while 30,000 writes per second go on: time × alone", 1.15, true),
        ("batches of 100: CPU × await", 1.1, true), ("chains of 10: CPU × await", 1.1, true),
        ("file of 1 GB loaded: memory above the start", 8, true),
        ("file of 1 GB loaded: rate × the curl command", 0.9, false),
        ("12 bytes, 64 at once, await: CPU × Go net/http", 1, true),
        ("1,000 at once, await: CPU × Go net/http", 1, true),
        ("HTTP/1.1 engine, C core: CPU × the bare client", 0.55, true),
        ("HTTP/1.1 engine, C core: CPU × wrk", 1.15, true),
        ("HTTP/1.1 engine, 10,000 at work, await: CPU × 64 at once", 1.2, true),
        ("HTTP/1.1 engine, https, C core: CPU × the bare client", 0.65, true),
        ("HTTP/1.1 engine, 10,000 in flight, closures: memory of each", 3072, true),
        ("1 at once, await: CPU × Go net/http", 1.1, true),
        ("32 at once, tasks on the loop: CPU × Go net/http", 1, true),
        ("ferry bench, 64 at once: CPU × wrk", 1.6, true),
        ("ferry bench, 3,000 per second: CPU × h2load", 1.5, true),
        ("ferry bench, 20,000 per second: p99", 3000, true),
        ("HTTP/1.1 engine, 1,000 at work, await: CPU × reqwest", 0.5, true),
    ])
    func whatWasPromisedHasARow(text: String, limit: Double, isAtMost: Bool) throws {
        let goals = GoalSheet(table: ResultTable()).all.filter { $0.text == text }
        try #require(goals.count == 1)
        #expect(goals[0].limit == limit && goals[0].isAtMost == isAtMost)
        #expect(goals[0].isReached == nil, "nothing was measured")
    }

    @Test func aRatioShowsBothSidesAndItsVerdict() throws {
        var table = ResultTable()
        for cpu in [12.0, 13, 20] {
            table.add(measurement(cpu: cpu), case: "get12@64", rival: .await)
            table.add(measurement(cpu: 10), case: "get12@64", rival: .bare)
        }
        let goal = try #require(GoalSheet(table: table).all.first)
        #expect(goal.measured == 1.3 && goal.isReached == false && goal.sides?.own == 13 && goal.sides?.other == 10)
        let text = GoalTable(goals: [goal], isWhole: false).text
        #expect(text.contains(#/await: CPU × the bare client +≤ 1\.25 × +13 : 10 µs +1\.30 +MISSED\n/#))
        #expect(text.hasSuffix("  0 reached, 1 missed\n"))
    }

    @Test func aFigureIsHeldAgainstItsLimit() throws {
        var table = ResultTable()
        let extra = ["memory_hits_per_core": 450_000, "slowed": 1.1, "disk_hits_per_core": 60_000.0]
        table.add(measurement(cpu: 0, extra: extra), case: "cache", rival: .awaitNative)
        let text = GoalTable(goals: GoalSheet(table: table).all, isWhole: false).text
        #expect(text.contains(#/from memory.* ≥ 300,000 +450,000 per second and core +1\.50 +reached\n/#))
        #expect(text.contains(#/from the disk.* ≥ 60,000 +60,000 per second and core +1\.00 +reached\n/#))
        #expect(text.contains(#/time × alone +≤ 1\.15 × .* 1\.10 +reached\n/#))
        #expect(text.split(separator: "\n").count == 5, "heads, three rows, a sum")
    }

    @Test func aWholeRunNamesWhatWasNotMeasured() {
        let goals = GoalSheet(table: ResultTable()).all
        let text = GoalTable(goals: goals, isWhole: true).text
        #expect(text.split(separator: "\n").count == goals.count + 2)
        #expect(text.contains(#/chains of 10: CPU × await +≤ 1\.10 × +– +– +not measured\n/#))
        #expect(text.hasSuffix("  0 reached, 0 missed, \(goals.count) not measured\n"))
        #expect(GoalTable(goals: goals, isWhole: false).text == "")
    }
}

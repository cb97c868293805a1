import Testing

@testable import FerryBenchmarks

@Suite struct ScheduleTests {
    private func schedule(_ arguments: String...) throws -> Schedule { Schedule(options: try Options(arguments)) }

    @Test func aWholeRunIsSomethingThatAPersonWaitsFor() throws {
        let schedule = try schedule()
        #expect(schedule.seconds < 15 * 60)
        #expect(schedule.text.contains(#/^\d+ cases, 5 rounds: about \d+ minutes, and 4 GB of disk/#))
    }

    @Test func lessToDoTakesLess() throws {
        let one = try schedule("--case", "crowd")
        #expect(one.text.hasPrefix("crowd, 5 rounds: about 15 seconds"))
        #expect(try schedule("--case", "get12@64", "--rounds", "1").seconds < schedule("--case", "get12@64").seconds)
        #expect(
            try schedule("--case", "get12@64", "--scale", "0.1").seconds < schedule("--case", "get12@64").seconds)
    }
}

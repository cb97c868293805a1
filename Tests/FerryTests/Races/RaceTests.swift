import FoundationEssentials
import Testing

/// Runs of every form and agents, ended at random moments. Each test has a process of its own, because descriptors,
/// threads and memory are counted.
///
/// Every error names a seed: with it as `FERRY_RACE_SEED` the rounds begin there.
@Suite(.timeLimit(.minutes(10))) struct RaceTests {
    @Test("10,000 runs from eight tasks, ended at any point, end once each and leave nothing behind")
    func runs() async {
        await #expect(processExitsWith: .success) {
            try await race(rounds: 40) { RaceRound(seed: $0, runs: 250) }
        }
    }

    @Test("200 agents that are made and dropped during their runs leave nothing behind")
    func agents() async {
        await #expect(processExitsWith: .success) {
            try await race(rounds: 200) { RaceRound(seed: $0, runs: 8, end: .released) }
        }
    }
}

private func race(rounds: Int, _ round: (UInt64) -> RaceRound) async throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["FERRY_RACE_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 32)
    #if FERRY_TSAN || FERRY_ASAN
    let rounds = rounds / 5
    #else
    let rounds = environment["FERRY_LONG_TESTS"] == "1" ? rounds * 10 : rounds
    #endif
    // Resources that the runtime and the libraries keep from then on do not count.
    let warmUp = rounds / 4
    var before = ProcessHolding()
    // What pools keep for reuse varies by some megabytes from round to round. A leak raises the lowest figure, too.
    var lowest = (early: Int.max, late: Int.max)
    for number in 0..<rounds {
        let faults = try await round(seed &+ UInt64(number)).play()
        for fault in faults.prefix(10) { Issue.record("\(fault)") }
        if !faults.isEmpty { return }
        let now = ProcessHolding.now
        if number == warmUp { before = now }
        if number < rounds / 2 { lowest.early = min(lowest.early, now.bytes) }
        if number >= rounds / 2 { lowest.late = min(lowest.late, now.bytes) }
    }
    #expect(lowest.late <= lowest.early + 3 << 20, "\(lowest) bytes; seed \(seed)")
    #expect(
        await eventually { ProcessHolding.now.isWithin(before) },
        "\(ProcessHolding.now), \(before) before; seed \(seed)")
}

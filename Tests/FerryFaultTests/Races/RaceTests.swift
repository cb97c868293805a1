import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Runs of every form and agents, ended at random moments. Each test has a process of its own, because descriptors,
/// threads and memory are counted.
///
/// Every error names a seed: with it as `FERRY_RACE_SEED` the rounds begin there.
@Suite(.timeLimit(.minutes(10))) struct RaceTests {
    @Test("10,000 runs from eight tasks, ended at any point, end once each and leave nothing behind")
    func runs() async {
        await #expect(processExitsWith: .success) {
            try await race(rounds: 40, runs: 250) { RaceRound(seed: $0, runs: $1) }
        }
    }

    @Test("200 agents that are made and dropped during their runs leave nothing behind")
    func agents() async {
        await #expect(processExitsWith: .success) {
            try await race(rounds: 200, runs: 8) { RaceRound(seed: $0, runs: $1, end: .released) }
        }
    }
}

private final class RaceFolder: Sendable {
    let folder: Folder

    init(_ folder: consuming Folder) { self.folder = folder }
}

private func race(rounds: Int, runs: Int, _ round: (UInt64, Int) -> RaceRound) async throws {
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
    // The cache of an agent that is gone may still open its database. If the folder were removed meanwhile, SQLite
    // would truncate a file that another connection maps.
    var folders: [RaceFolder] = []
    for number in 0..<rounds {
        let folder = RaceFolder(try Folder())
        folders.append(folder)
        if folders.count > 100 { folders.removeFirst() }
        let faults = try await round(seed &+ UInt64(number), runs).play(in: folder.folder)
        for fault in faults.prefix(10) { Issue.record("\(fault)") }
        if !faults.isEmpty { return }
        if number == warmUp { before = .now }
    }
    #expect(
        await eventually { ProcessHolding.now.isWithin(before, after: (rounds - warmUp) * runs) },
        "\(ProcessHolding.now), \(before) before; seed \(seed)")
    withExtendedLifetime(folders) {}
}

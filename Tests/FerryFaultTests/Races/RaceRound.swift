import FerryTesting
import FerryTransport
import FoundationEssentials

@testable import Ferry
@testable import FerryTestSupport

/// A round: its own agent and server, and runs of every form from eight tasks. Each run ends at its moment, and the
/// agent at one of its own.
struct RaceRound {
    enum End: CaseIterable {
        /// When all runs have ended.
        case late
        /// Midway, with time for the running requests.
        case graceful
        case atOnce
        /// Midway, without a shutdown.
        case released
    }

    let seed: UInt64
    let runs: Int
    let end: End

    /// The same seed makes the same round; its course also depends on the scheduler.
    init(seed: UInt64, runs: Int, end: End? = nil) {
        self.seed = seed
        self.runs = runs
        self.end = end ?? End.allCases[Int(seed % UInt64(End.allCases.count))]
    }

    /// What was wrong, with the seed that caused it.
    func play(in folder: borrowing Folder) async throws -> [String] {
        let files = folder.file("files")
        try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
        var options = LoopbackServer.Options()
        options.recordedRequests = 0
        let server = try LoopbackServer(options)
        RaceTarget.install(on: server)
        var random = SplitMix(state: seed)
        let record = RaceRecord()
        let holder = RaceAgent(configuration(server, record, folder.file("cache"), &random))
        weak let core = holder.agent!.core
        var transport = core?.transport
        weak let connections = transport
        // An agent that is only released ends its connections when nobody can ask it about them any more.
        if end == .released { transport = nil }
        let plans = (0..<runs).map { RaceRun($0, using: &random) }
        let ending = Int.random(in: 0..<runs, using: &random)
        let player = RacePlayer(
            holder: holder, record: record, folder: files, mayShutDown: end == .graceful || end == .atOnce)

        // Not a child, and not awaited: a run that never ends is an error to report.
        Task {
            await race(plans, player, endingAt: ending)
            record.finish()
        }
        guard await eventually({ record.isOver }) else { return explain(["never ended: \(record.open)"]) }
        if end == .late { await holder.agent?.shutdown() }
        holder.drop()

        var faults: [String] = []
        if await !eventually({ core == nil }) { faults.append("the agent is still there") }
        record.seal()
        if let transport, await !eventually({ transport.isAtRest }) {
            faults.append("still at work: \(transport.statistics)")
        }
        transport = nil
        if await !eventually({ connections == nil }) { faults.append("the transport is still there") }
        if await !eventually({ record.alive == 0 }) { faults.append("\(record.alive) runs are still held") }
        if !record.isStopped { faults.append("observers still wait for the end of a run") }
        try await server.waitForOpenConnections(atMost: 0)
        for run in plans {
            guard let path = run.name.map({ files + "/" + $0 }) else { continue }
            if FileManager.default.fileExists(atPath: path), let fault = run.targets[0].fault(fileAt: path) {
                faults.append("\(run): \(fault)")
            }
        }
        return explain(faults + record.faults)
    }

    private func explain(_ faults: [String]) -> [String] {
        faults.map { "seed \(seed), \(runs) runs, agent ended \(end): \($0)" }
    }

    private func configuration(
        _ server: LoopbackServer, _ record: RaceRecord, _ cache: String, _ random: inout SplitMix
    ) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.observers = [record]
        configuration.eventLoopCount = Int.random(in: 1...2, using: &random)
        configuration.limits.maxConcurrentTransfers = Int.random(in: 2...64, using: &random)
        configuration.cache = CacheConfiguration(directory: cache)
        return configuration
    }

    /// All runs, from eight tasks, and the end of the agent when this many have started.
    private func race(_ plans: [RaceRun], _ player: RacePlayer, endingAt ending: Int) async {
        await withTaskGroup(of: Void.self) { tasks in
            for first in 0..<8 {
                tasks.addTask {
                    // Each has several at once, so that there is always one that waits.
                    await withTaskGroup(of: Void.self) { window in
                        for number in stride(from: first, to: plans.count, by: 8) {
                            if number >= 8 * 6 { await window.next() }
                            window.addTask { await player.play(plans[number]) }
                        }
                    }
                }
            }
            tasks.addTask {
                if end == .late { return }
                _ = await eventually { player.record.begun > ending || player.holder.agent == nil }
                switch end {
                case .late: break
                case .graceful: await player.holder.agent?.shutdown(grace: .milliseconds(ending % 20))
                case .atOnce: await player.holder.agent?.shutdown(grace: .zero)
                case .released: player.holder.drop()
                }
            }
        }
    }
}

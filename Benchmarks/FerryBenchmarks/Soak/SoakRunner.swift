internal import Ferry
internal import Foundation
internal import Synchronization

/// Runs randomly chosen kinds, many at once, until the time is over, and samples the process meanwhile.
final class SoakRunner: Sendable {
    private let tallies = Mutex<[String: SoakReport.Tally]>([:])
    private let ended = Atomic<Int>(0)
    private let working = Atomic<Int>(0)
    private static let atOnce = 32
    /// Twice as many in the first quarter of the time: pools and threads grow to the largest number that was ever
    /// needed at once, and would otherwise grow for hours.
    private static let extra = 32
    private static let patience = Duration.seconds(15)

    /// `worker soak-ferry URL SECONDS`; prints its report as one line of JSON.
    static func ferry(url: String, seconds: Double) async throws -> SoakReport {
        let folder = NSTemporaryDirectory() + "/ferry-soak-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(SoakBody.pattern).write(to: URL(fileURLWithPath: folder + "/pattern"))
        var report = SoakReport(client: "Ferry")
        // Descriptors that the first agent opens for the whole process do not count for this one.
        let first = NetworkAgent(configuration: configuration(url, folder))
        let firstClient = SoakClient(agent: first, base: url, folder: folder)
        for kind in SoakKind.all { _ = await kind.run(firstClient) }
        await first.shutdown()
        try await Task.sleep(for: .seconds(1))
        report.descriptorsBefore = SoakSample.now(since: .now, ended: 0).descriptors
        let runner = SoakRunner()
        try await runner.soak(&report, url, folder, seconds)
        // The event loop closes its connections by itself, after the last response.
        for _ in 0..<40 where report.descriptorsAfter == 0 || report.descriptorsAfter > report.descriptorsBefore {
            try await Task.sleep(for: .milliseconds(50))
            report.descriptorsAfter = SoakSample.now(since: .now, ended: 0).descriptors
        }
        report.tallies = runner.tallies.withLock { $0 }
        return report
    }

    /// Its agent is gone when this returns, and with it the event loop.
    private func soak(_ report: inout SoakReport, _ url: String, _ folder: String, _ seconds: Double) async throws {
        let agent = NetworkAgent(configuration: Self.configuration(url, folder))
        let client = SoakClient(agent: agent, base: url, folder: folder)
        report.samples = await run(seconds) {
            let kind = SoakKind.all[Int.random(in: 0..<SoakKind.all.count)]
            await self.count(kind.name) { await kind.run(client) }
        }
        let statistics = agent.statistics
        report.left = Int(statistics.waiting + statistics.running)
        await agent.shutdown()
    }

    private static func configuration(_ url: String, _ folder: String) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: url)
        configuration.cache = CacheConfiguration(directory: folder + "/cache")
        return configuration
    }

    /// One run of a kind.
    func count(_ name: String, _ body: () async -> String?) async {
        tallies.withLock { $0[name, default: .init()].started += 1 }
        let fault = await body()
        tallies.withLock { tallies in
            tallies[name, default: .init()].ended += 1
            guard let fault else { return tallies[name, default: .init()].right += 1 }
            if tallies[name, default: .init()].wrong.count < SoakReport.Tally.keptWords {
                tallies[name, default: .init()].wrong.append(fault)
            }
        }
        ended.add(1, ordering: .relaxed)
    }

    var counted: [String: SoakReport.Tally] { tallies.withLock { $0 } }

    /// Takes a sample each second, while tasks run `body` again and again.
    ///
    /// The tasks are unstructured: one that never returns is only waited for up to the patience, and shows as a run
    /// that did not end.
    func run(_ seconds: Double, _ body: @escaping @Sendable () async -> Void) async -> [SoakSample] {
        let start = ContinuousClock.now
        let end = start + .seconds(seconds)
        let ends =
            Array(repeating: end, count: Self.atOnce)
            + Array(repeating: start + .seconds(seconds / 4), count: Self.extra)
        working.store(ends.count, ordering: .relaxed)
        for end in ends {
            Task {
                while ContinuousClock.now < end { await body() }
                self.working.subtract(1, ordering: .releasing)
            }
        }
        var samples: [SoakSample] = []
        while ContinuousClock.now < end {
            try? await Task.sleep(for: .seconds(1))
            samples.append(.now(since: start, ended: ended.load(ordering: .relaxed)))
        }
        while working.load(ordering: .acquiring) > 0 && ContinuousClock.now < end + Self.patience {
            try? await Task.sleep(for: .milliseconds(50))
        }
        return samples
    }
}

internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// Two ways of doing the same, measured in one process in short rounds that take turns, so that other programs disturb
/// both alike. Two runs of the same in processes of their own differ by more than the few per cent that are measured.
struct Turns {
    private var first: [Double] = []
    private var second: [Double] = []

    /// Each closure returns the cost of one request. The first turn of each is not counted.
    init(
        rounds: Int, _ first: () async throws -> Double, _ second: () async throws -> Double
    ) async throws {
        _ = (try await first(), try await second())
        for round in 0..<rounds {
            if round.isMultiple(of: 2) { self.first.append(try await first()) }
            self.second.append(try await second())
            if !round.isMultiple(of: 2) { self.first.append(try await first()) }
        }
    }

    var medians: (first: Double, second: Double) {
        (ResultTable.median(first) ?? .nan, ResultTable.median(second) ?? .nan)
    }

    /// The median of the second over the first.
    var ratio: Double { ResultTable.median(zip(second, first).map { $0 / $1 }) ?? .nan }

    /// The median of what the second costs more.
    var difference: Double { ResultTable.median(zip(second, first).map { $0 - $1 }) ?? .nan }

    /// CPU time of this process for one of 64 concurrent requests, in microseconds, with that of `end`.
    static func processTime(
        each: Int, _ end: () async -> Void = {}, of send: @escaping @Sendable () async throws -> Void
    ) async throws -> Double {
        let before = ProcessUsage.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<atOnce { group.addTask { for _ in 0..<each { try await send() } } }
            try await group.waitForAll()
        }
        await end()
        let used = ProcessUsage.now - before
        return (used.user + used.system) / Double(atOnce * each)
    }

    /// The same on the event loop's thread, of which only the time counts: not that of threads that sleep and wake.
    static func loopTime(
        each: Int, _ loop: any TaskExecutor, of send: @escaping @Sendable () async throws -> Void
    ) async throws -> Double {
        try await withTaskExecutorPreference(loop) {
            let before = threadNanoseconds()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<atOnce {
                    group.addTask(executorPreference: loop) { for _ in 0..<each { try await send() } }
                }
                try await group.waitForAll()
            }
            return Double(threadNanoseconds() - before) / 1000 / Double(atOnce * each)
        }
    }

    private static let atOnce = 64

    /// CPU time of the calling thread.
    private static func threadNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

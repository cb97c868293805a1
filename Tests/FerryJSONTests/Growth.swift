import Foundation

/// The CPU time of one run in nanoseconds, on this thread alone.
private func cost(_ body: () throws -> Void) throws -> Double {
    func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
    let start = now()
    try body()
    return now() - start
}

/// The factor in cost for eight times the size, as the minimum of three runs each: 8 for linear time, 64 for quadratic
/// time. `prepare` makes the action to run.
func growthOfEightfold(_ size: Int, _ prepare: (Int) throws -> () throws -> Void) throws -> Double {
    let (small, large) = (try prepare(size), try prepare(8 * size))
    let costs = try [small, large].map { body in try (0..<3).map { _ in try cost(body) }.min()! }
    return costs[1] / costs[0]
}

/// Between linear and quadratic time, for `growthOfEightfold`.
let mostGrowth = 28.0

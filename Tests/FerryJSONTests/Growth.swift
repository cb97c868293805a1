import Foundation

/// What one run takes of the processor, in nanoseconds, on this thread alone.
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

/// How many times as much eight times the size costs, the least of three runs each: 8 where time is linear, 64 where it
/// is the square. `prepare` makes what is run.
func growthOfEightfold(_ size: Int, _ prepare: (Int) throws -> () throws -> Void) throws -> Double {
    let (small, large) = (try prepare(size), try prepare(8 * size))
    let costs = try [small, large].map { body in try (0..<3).map { _ in try cost(body) }.min()! }
    return costs[1] / costs[0]
}

/// Between linear time and its square, for `growthOfEightfold`.
let mostGrowth = 28.0

internal import Glibc

/// Nanoseconds of the monotonic clock: one call, no `Duration` arithmetic, for use millions of times a run.
public func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Blocks the thread until the monotonic clock has come so far, or a signal has.
public func blockThread(untilMonotonic nanoseconds: UInt64) {
    var time = timespec()
    time.tv_sec = Int(nanoseconds / 1_000_000_000)
    time.tv_nsec = Int(nanoseconds % 1_000_000_000)
    clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil)
}

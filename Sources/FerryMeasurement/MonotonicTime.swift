internal import Glibc

/// Nanoseconds of the monotonic clock: one call, no `Duration` arithmetic, for use millions of times a run.
public func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

internal import Ferry

/// When the requests of the open model are due: as many a second as were asked for, at even distances, however long the
/// answers take.
///
/// Above 1,500 a second several are due at once, so that the distances are about a millisecond. A wake-up for each
/// would cost the client two to three times as much CPU, which a server on the same machine would miss. Each due time
/// is computed from the first, so that what was late once does not delay those that follow.
struct ArrivalSchedule: Sendable, Equatable {
    /// Nanoseconds of the monotonic clock: when the first is due.
    let start: UInt64
    /// A second.
    let rate: Double
    /// How many there are.
    let count: Int
    /// How many are due at once.
    private let group: Int

    init(start: UInt64, rate: Double, count: Int) {
        self.start = start
        self.rate = rate
        self.count = count
        group = max(1, Int((rate / 1000).rounded()))
    }

    /// All that are due within a time.
    init(start: UInt64, rate: Double, duration: Duration) {
        let seconds = Double(duration.microseconds) / 1e6
        self.init(start: start, rate: rate, count: max(1, Int((seconds * rate).rounded(.up))))
    }

    /// When the one with this number is due; the first has the number 0.
    func time(of number: Int) -> UInt64 {
        let (time, isTooFar) = start.addingReportingOverflow(
            wholeNumber((Double(number / group * group) * 1e9 / rate).rounded()))
        return isTooFar ? .max : time
    }

    /// How many are due by now.
    func due(at now: UInt64) -> Int {
        if now < start { return 0 }
        var due = min(count, (Int(Double(now - start) * rate / 1e9) / group + 1) * group)
        // Due times are rounded to nanoseconds, which may make it one more or less.
        while due > 0 && time(of: due - 1) > now { due -= 1 }
        while due < count && time(of: due) <= now { due += 1 }
        return due
    }
}

import Testing

/// When a case has to end (I5): a deadline, a timeout or a cancel.
///
/// Each of its plays has a bound that only a bug can exceed. The median of the plays has this bound: a busy machine is
/// late now and then, but not every time.
struct FaultDue: Sendable {
    /// Counted from the start of the run, or from its cancel.
    var time = Duration.zero
    /// How much later it may be.
    var tolerance: Duration
    /// How often all plays are repeated if they are late.
    static let rounds = 3

    /// A run must not end before its time. The clock of the loop counts milliseconds.
    func expectNotEarly(_ span: Duration, _ play: Play, _ sourceLocation: SourceLocation) {
        #expect(span >= time - .milliseconds(5), "I5: \(play): early, after \(span)", sourceLocation: sourceLocation)
    }

    /// Whether the median of the plays was in time.
    func isMet(by times: [Duration]) -> Bool {
        // The sanitizers take several times as long.
        #if FERRY_TSAN || FERRY_ASAN
        let tolerance = tolerance * 10
        #endif
        return times.sorted()[times.count / 2] <= time + tolerance
    }
}

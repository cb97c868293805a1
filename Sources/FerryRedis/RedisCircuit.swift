/// Leaves Redis alone for a while after failures, so that no request pays for trying again and again.
///
/// Times are nanoseconds of a clock that does not go back.
struct RedisCircuit {
    private enum State {
        case closed(failures: Int)
        case open(until: UInt64)
        /// One command finds out whether Redis is back; the others are refused meanwhile.
        case probing
    }

    private var state = State.closed(failures: 0)
    private let maxFailures: Int
    private let shortest: UInt64
    private let longest: UInt64
    private var pause: UInt64

    init(maxFailures: Int, pause: Duration, longestPause: Duration) {
        self.maxFailures = max(maxFailures, 1)
        shortest = max(pause.nanoseconds, 1)
        longest = max(longestPause.nanoseconds, shortest)
        self.pause = shortest
    }

    /// Whether commands are refused now, but for one that finds out.
    var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Whether a command may be sent. One that may has to report what became of it.
    mutating func allows(at now: UInt64) -> Bool {
        switch state {
        case .closed: return true
        case .probing: return false
        case .open(let until):
            if now < until { return false }
            state = .probing
            return true
        }
    }

    mutating func succeeded() {
        // What was sent before Redis failed may be answered late: only the one that was let through tells.
        if case .open = state { return }
        state = .closed(failures: 0)
        pause = shortest
    }

    mutating func failed(at now: UInt64) {
        switch state {
        case .closed(let failures):
            if failures + 1 < maxFailures {
                state = .closed(failures: failures + 1)
            } else {
                state = .open(until: now &+ pause)
            }
        case .probing:
            pause = min(pause.multipliedReportingOverflow(by: 2).overflow ? longest : pause * 2, longest)
            state = .open(until: now &+ pause)
        case .open: break
        }
    }

    /// The one that was let through has found out nothing: the next one does.
    mutating func gaveUp(at now: UInt64) { if case .probing = state { state = .open(until: now) } }
}

extension Duration {
    /// 0 for a negative one, and a century at most.
    var nanoseconds: UInt64 {
        let seconds = min(max(components.seconds, -1), 3_155_760_000)
        let rest = components.attoseconds / 1_000_000_000
        let sum = seconds * 1_000_000_000 + rest
        return sum > 0 ? UInt64(sum) : 0
    }

    /// At least one.
    var milliseconds: UInt64 { max(nanoseconds / 1_000_000, 1) }
}

/// A circuit breaker: after failures it stops commands for a while, so that requests do not wait for Redis again and
/// again.
///
/// Times are in nanoseconds of a monotonic clock.
struct RedisCircuit {
    private enum State {
        case closed(failures: Int)
        case open(until: UInt64)
        /// One command tests whether Redis is back; the others are refused meanwhile.
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

    /// Whether commands are refused now, except one that tests Redis.
    var isOpen: Bool { if case .closed = state { false } else { true } }

    /// The end of the pause, 0 without one; `nil` while a command tests Redis.
    var pauseEnd: UInt64? {
        switch state {
        case .closed: 0
        case .open(let until): until
        case .probing: nil
        }
    }

    /// Whether a command may be sent. The caller must then report its outcome.
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
        // Replies to commands from before the failure may arrive late; only the test command counts.
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

    /// The test command ended without a result; the next command is the test.
    mutating func gaveUp(at now: UInt64) { if case .probing = state { state = .open(until: now) } }
}

extension Duration {
    /// The duration in nanoseconds: 0 if it is negative, and at most a century.
    var nanoseconds: UInt64 {
        let seconds = min(max(components.seconds, -1), 3_155_760_000)
        let rest = components.attoseconds / 1_000_000_000
        let sum = seconds * 1_000_000_000 + rest
        return sum > 0 ? UInt64(sum) : 0
    }

    /// The duration in milliseconds, at least 1.
    var milliseconds: UInt64 { max(nanoseconds / 1_000_000, 1) }
}

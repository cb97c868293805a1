import Foundation
import Synchronization

@testable import Ferry

/// When the machine stood still, or gave its processors to others: a thread sleeps for a moment again and again, and
/// looks how long that took. What Ferry promises of time is counted without these pauses.
enum MachinePauses {
    private static let moment: useconds_t = 5000
    private static let pauses = Mutex<[(from: ContinuousClock.Instant, to: ContinuousClock.Instant)]>([])

    private static let watch: Void = Thread.detachNewThread {
        var last = ContinuousClock.now
        while true {
            usleep(moment)
            let now = ContinuousClock.now
            let expected = Duration.microseconds(moment)
            if now - last > expected * 3 { pauses.withLock { [last] in $0.append((last + expected, now)) } }
            last = now
        }
    }

    /// Begins to look, once.
    static func beginWatch() { _ = watch }

    /// How much of this time it stood still.
    static func total(between from: ContinuousClock.Instant, and to: ContinuousClock.Instant) -> Duration {
        // One that goes on is told of when it is over.
        usleep(2 * moment)
        return pauses.withLock { pauses in
            pauses.reduce(.zero) { $0 + max(.zero, min($1.to, to) - max($1.from, from)) }
        }
    }
}

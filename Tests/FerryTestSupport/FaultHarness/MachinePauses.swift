import FerrySynchronization
import Foundation

@testable import Ferry

/// The times in which the machine stood still, or gave its processors to others: a thread sleeps briefly again and
/// again, and measures how long that took. Ferry's promises about time are checked without these pauses.
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

    /// Starts measuring, once.
    static func beginWatch() { _ = watch }

    /// How much of this time the machine stood still.
    static func total(between from: ContinuousClock.Instant, and to: ContinuousClock.Instant) -> Duration {
        // A pause is reported when it is over.
        usleep(2 * moment)
        return pauses.withLock { pauses in
            pauses.reduce(.zero) { $0 + max(.zero, min($1.to, to) - max($1.from, from)) }
        }
    }
}

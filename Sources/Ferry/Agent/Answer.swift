import FerryTransport
import Synchronization

/// What became of a run.
enum Answer: Sendable {
    /// The result of its one transfer.
    case result(TransferResult)
    /// The result of its last transfer, and the way there.
    case arrived(TransferResult, Trail)
    /// A fault of our own.
    case refused(RequestError)
    /// It cannot be sent by a plain transfer: a journey has to begin.
    case unsent

    /// It came from no server.
    var isIntercepted: Bool { if case .arrived(_, let trail) = self { trail.isIntercepted } else { false } }

    /// Where it came from, when that is not where the run began.
    var url: String? { if case .arrived(_, let trail) = self { trail.url } else { nil } }
}

/// The way to an answer that was not the first, or did not come from the network.
final class Trail: Sendable {
    /// Where the answer came from.
    let url: String
    /// The redirects that were followed.
    let redirects: [Redirect]
    let earlier: EarlierAttempts
    /// It came from no network.
    let isIntercepted: Bool
    let isFromCache: Bool
    /// What the cache had to do with it; `nil` when it was not asked.
    let cache: CacheTrace?
    /// It was sent with credentials that the request does not show.
    let hasUnknownCredentials: Bool
    /// Names of header fields that it was sent with and the request does not show.
    let added: [String]
    /// When the run began; `nil` when that was not measured.
    let start: ContinuousClock.Instant?
    /// From there to the answer.
    let elapsed: Duration?
    /// What was read out of the body, where the cache may hold the result: the front in memory does not count it, so it
    /// must not stay with the result for as long as the entry does.
    fileprivate let reading = Mutex<(any AnyObject & Sendable)?>(nil)

    init(
        url: String, redirects: [Redirect] = [], earlier: EarlierAttempts = EarlierAttempts(),
        isIntercepted: Bool = false, isFromCache: Bool = false, cache: CacheTrace? = nil,
        hasUnknownCredentials: Bool = false, added: [String] = [], start: ContinuousClock.Instant? = nil
    ) {
        self.url = url
        self.redirects = redirects
        self.earlier = earlier
        self.isIntercepted = isIntercepted
        self.isFromCache = isFromCache
        self.cache = cache
        self.hasUnknownCredentials = hasUnknownCredentials
        self.added = added
        self.start = start
        elapsed = start.map { $0.duration(to: .now) }
    }

    /// Keeps what was read, unless another thread was first. Gives what is kept.
    fileprivate func keep(_ made: any AnyObject & Sendable) -> any AnyObject & Sendable {
        reading.withLock { reading in
            if let reading { return reading }
            reading = made
            return made
        }
    }

    /// Lets go of what is kept, if nobody else holds it.
    fileprivate func forgetReading() {
        // Freed when the lock is left.
        _ = reading.withLock { reading in isKnownUniquelyReferenced(&reading) ? reading.take() : nil }
    }

    /// How often the request was (begun to be) sent, up to this answer.
    func attempts(_ last: TransferResult) -> Int { earlier.count + (isIntercepted ? 0 : last.attempts) }
}

extension Response {
    /// Whether the cache, in memory, may hold the result too.
    var mayBeKept: Bool { trail?.cache != nil }

    /// What was read out of the body: of this response and its copies, where its result may be the cache's.
    var reading: (any AnyObject & Sendable)? {
        guard let trail, mayBeKept else { return result.reading }
        return trail.reading.withLock { $0 }
    }

    /// Keeps what was read, unless another thread was first. Gives what is kept.
    func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        guard let trail, mayBeKept else { return result.keep(reading) }
        return trail.keep(reading)
    }

    /// Its memory goes back, unless somebody has a view of it.
    func forgetReading() {
        if let trail, mayBeKept { trail.forgetReading() } else { result.forgetReading() }
    }
}

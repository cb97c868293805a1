import FerryTransport
import Synchronization

/// What became of a run.
enum Answer: Sendable {
    /// The result of its one transfer.
    case result(TransferResult)
    /// The result of its last transfer, and the way there.
    case arrived(TransferResult, ResponseOrigin)
    /// A fault of our own.
    case refused(RequestError)
    /// It cannot be sent by a plain transfer: a run has to begin.
    case unsent

    /// It came from no server.
    var isIntercepted: Bool { if case .arrived(_, let origin) = self { origin.isIntercepted } else { false } }

    /// Where it came from, when that is not where the run began.
    var url: String? { if case .arrived(_, let origin) = self { origin.url } else { nil } }
}

/// The way to an answer that was not the first, or did not come from the network.
final class ResponseOrigin: Sendable {
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
    /// What said that the cache's response is still what the server has; `nil` of any other.
    let validation: TransferResult?
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
        hasUnknownCredentials: Bool = false, added: [String] = [], start: ContinuousClock.Instant? = nil,
        validation: TransferResult? = nil
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
        self.validation = validation
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
    var mayBeKept: Bool { origin?.cache != nil }

    /// What was read out of the body: of this response and its copies, where its result may be the cache's.
    var reading: (any AnyObject & Sendable)? {
        guard let origin, mayBeKept else { return result.reading }
        return origin.reading.withLock { $0 }
    }

    /// Keeps what was read, unless another thread was first. Gives what is kept.
    func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        guard let origin, mayBeKept else { return result.keep(reading) }
        return origin.keep(reading)
    }

    /// Its memory goes back, unless somebody has a view of it.
    func forgetReading() {
        if let origin, mayBeKept { origin.forgetReading() } else { result.forgetReading() }
    }
}

/// What of a run was sent before the answer at hand, redirects included.
struct EarlierAttempts: Sendable {
    /// How often it was tried.
    private(set) var count = 0
    /// A server may have acted on one of them.
    private(set) var mayHaveBeenProcessed = false
    /// How many of these were answered by a redirect that was followed.
    private(set) var redirects = 0
    /// Heads and bodies.
    private(set) var bytesSent: UInt64 = 0
    private(set) var bytesReceived: UInt64 = 0

    mutating func addRedirect() { redirects += 1 }

    /// Of so many sendings, how many did not follow a redirect. One that came to what is no server was sent all the
    /// same.
    func withoutRedirects(_ count: Int) -> Int { max(count - redirects, min(count, 1)) }

    mutating func add(_ result: TransferResult) {
        count += result.attempts
        bytesSent += result.bytesSent
        bytesReceived += result.bytesReceived
        mayHaveBeenProcessed = mayHaveBeenProcessed || result.succeeded || result.mayHaveBeenProcessed
    }
}

extension RequestError {
    /// The same without its attempts and their bytes.
    var uncounted: RequestError {
        var facts = facts
        (facts.attempts, facts.bytesSent, facts.bytesReceived) = (0, 0, 0)
        return RequestError(facts)
    }

    /// The same, of a run that was sent before it came to this. One that speaks of an answer knows already.
    func after(_ earlier: EarlierAttempts, _ redirects: [Redirect]) -> RequestError {
        if response != nil || (earlier.count == 0 && redirects.isEmpty) { return self }
        var facts = facts
        facts.redirects = redirects
        facts.attempts += earlier.count
        facts.bytesSent += earlier.bytesSent
        facts.bytesReceived += earlier.bytesReceived
        facts.mayHaveBeenProcessed = facts.mayHaveBeenProcessed || earlier.mayHaveBeenProcessed
        return RequestError(facts)
    }

    /// The same, of a run that took so long, and of whose attempts before it the last one had these times. One that
    /// speaks of an answer knows already.
    func measured(_ elapsed: Duration, _ last: RequestMetrics?, _ earlier: EarlierAttempts) -> RequestError {
        if response != nil || attempts == 0 { return self }
        var facts = facts
        var measured = facts.measured ?? last ?? RequestMetrics()
        (measured.bytesSent, measured.bytesReceived) = (bytesSent, bytesReceived)
        measured.total = elapsed
        measured.redirects = redirects.count
        measured.attempts = earlier.withoutRedirects(attempts)
        facts.measured = measured
        return RequestError(facts)
    }
}

extension TransferResult {
    /// Head and body.
    var bytesSent: UInt64 { headBytesSent + bodyBytesSent }

    /// Likewise, before decoding.
    var bytesReceived: UInt64 { headBytesReceived + bodyBytesReceived }
}

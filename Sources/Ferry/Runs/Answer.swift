import FerrySynchronization
import FerryTransport

/// How the transfers of a run have ended.
enum Answer: Sendable {
    /// The result of its only transfer.
    case result(TransferResult)
    /// The result of its last transfer, and how it got there.
    case arrived(TransferResult, ResponseOrigin)
    /// An error found by Ferry.
    case refused(RequestError)
    /// Not sent, because it needs more than a plain transfer: a run has to begin.
    case unsent

    /// Whether no server was involved.
    var isIntercepted: Bool { if case .arrived(_, let origin) = self { origin.isIntercepted } else { false } }

    /// The result of its last transfer; `nil` without one.
    var transferred: TransferResult? {
        switch self {
        case .result(let result), .arrived(let result, _): result
        case .refused, .unsent: nil
        }
    }

    /// The URL of the response if it is not the URL of the run.
    var url: String? { if case .arrived(_, let origin) = self { origin.url } else { nil } }
}

/// The origin of a response that was not the first of its run, or did not come from the network.
final class ResponseOrigin: Sendable {
    /// The URL of the response.
    let url: String
    /// The redirects that were followed.
    let redirects: [Redirect]
    let earlier: EarlierAttempts
    /// The response did not come from the network.
    let isIntercepted: Bool
    let isFromCache: Bool
    /// What the cache did; `nil` if it was not used.
    let cache: CacheTrace?
    /// The request was sent with credentials that it does not show.
    let hasUnknownCredentials: Bool
    /// The names of the header fields that were sent but are not part of the request.
    let added: [String]
    /// The transfer that validated the stored response; `nil` otherwise.
    let validation: TransferResult?
    /// The start of the run; `nil` if it was not measured.
    let start: ContinuousClock.Instant?
    /// The time from the start to the response.
    let elapsed: Duration?
    /// What was parsed from the body, if the cache may hold the result. The memory cache does not count this, so it
    /// must not stay with the result for as long as the entry exists.
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

    /// Stores the parsed object, unless another thread was first, and returns the stored one.
    fileprivate func keep(_ made: any AnyObject & Sendable) -> any AnyObject & Sendable {
        reading.withLock { reading in
            if let reading { return reading }
            reading = made
            return made
        }
    }

    /// Releases the parsed object if nobody else holds it.
    fileprivate func forgetReading() {
        // Freed after the lock is released.
        _ = reading.withLock { reading in isKnownUniquelyReferenced(&reading) ? reading.take() : nil }
    }

    /// The number of times that the request was sent, or began to be sent, up to this response.
    func attempts(_ last: TransferResult) -> Int { earlier.count + (isIntercepted ? 0 : last.attempts) }
}

extension Response {
    /// Whether the memory cache may hold the result, too.
    var mayBeKept: Bool { origin?.cache != nil }

    /// What was parsed from the body, shared by this response and its copies, if the cache may hold the result.
    var reading: (any AnyObject & Sendable)? {
        guard let origin, mayBeKept else { return result.reading }
        return origin.reading.withLock { $0 }
    }

    /// Stores the parsed object, unless another thread was first, and returns the stored one.
    func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        guard let origin, mayBeKept else { return result.keep(reading) }
        return origin.keep(reading)
    }

    /// Releases the parsed object, unless a view of it exists.
    func forgetReading() {
        if let origin, mayBeKept { origin.forgetReading() } else { result.forgetReading() }
    }
}

/// What was sent before the current response, including redirects.
struct EarlierAttempts: Sendable {
    /// The number of attempts.
    private(set) var count = 0
    /// Whether a server may have processed one of them.
    private(set) var mayHaveBeenProcessed = false
    /// The number of attempts whose response was a redirect that was followed.
    private(set) var redirects = 0
    /// Heads and bodies.
    private(set) var bytesSent: UInt64 = 0
    private(set) var bytesReceived: UInt64 = 0

    /// Everything that was sent for this answer.
    init(_ answer: Answer) {
        switch answer {
        case .result(let result): add(result)
        case .arrived(let result, let origin):
            self = origin.earlier
            if !origin.isIntercepted { add(origin.validation ?? result) }
        case .refused(let error):
            (count, redirects) = (error.attempts, error.redirects.count)
            (bytesSent, bytesReceived) = (error.bytesSent, error.bytesReceived)
            mayHaveBeenProcessed = error.mayHaveBeenProcessed
        case .unsent: break
        }
    }

    init() {}

    mutating func addRedirect() { redirects += 1 }

    /// How many of `count` attempts did not follow a redirect: at least one if there was any, even if it reached no
    /// server.
    func withoutRedirects(_ count: Int) -> Int { max(count - redirects, min(count, 1)) }

    mutating func add(_ result: TransferResult) {
        count += result.attempts
        bytesSent += result.bytesSent
        bytesReceived += result.bytesReceived
        mayHaveBeenProcessed = mayHaveBeenProcessed || result.succeeded || result.mayHaveBeenProcessed
    }
}

extension RequestError {
    /// The same error without its attempts and their bytes.
    var uncounted: RequestError {
        var facts = facts
        (facts.attempts, facts.bytesSent, facts.bytesReceived) = (0, 0, 0)
        return RequestError(facts)
    }

    /// The same error with the earlier attempts of the run added. An error with a response already includes them.
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

    /// The same error with the duration of the run, and the metrics of the last attempt before it. An error with a
    /// response already has them.
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
    /// Bytes sent, head and body.
    var bytesSent: UInt64 { headBytesSent + bodyBytesSent }

    /// Bytes received, head and body, before decoding.
    var bytesReceived: UInt64 { headBytesReceived + bodyBytesReceived }
}

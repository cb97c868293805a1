import FerryTransport

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

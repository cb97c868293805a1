import FerryTransport

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
}

/// The way to an answer that was not the first, or did not come from the network.
final class Trail: Sendable {
    /// Where the answer came from.
    let url: String
    /// The redirects that were followed.
    let redirects: [Redirect]
    /// How often the request was sent before.
    let earlierAttempts: Int
    let isFromCache: Bool
    /// From the start of the run on.
    let elapsed: Duration?

    init(
        url: String, redirects: [Redirect] = [], earlierAttempts: Int = 0, isFromCache: Bool = false,
        elapsed: Duration? = nil
    ) {
        self.url = url
        self.redirects = redirects
        self.earlierAttempts = earlierAttempts
        self.isFromCache = isFromCache
        self.elapsed = elapsed
    }
}

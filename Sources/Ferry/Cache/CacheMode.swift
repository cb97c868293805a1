/// How a start uses the cache. It matters only for requests with a ``CachePolicy``.
///
/// Both at once, the kept answer and then the network's, is `send` and `start` with `cached:`.
public struct CacheMode: Sendable, Hashable {
    enum Way: Sendable { case cacheElseNetwork, reload, cacheOnly }

    let way: Way
    /// Microseconds past its time for which an entry may stand in for a failure.
    let staleIfError: Int64
    /// Likewise, for which it is delivered while another is fetched.
    let staleWhileRevalidate: Int64

    private init(_ way: Way, staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero) {
        self.way = way
        self.staleIfError = staleIfError.microseconds
        self.staleWhileRevalidate = staleWhileRevalidate.microseconds
    }

    /// A hit answers the run; everything else goes to the network.
    public static let cacheElseNetwork = CacheMode(.cacheElseNetwork)

    /// The cache is not asked; the answer is kept all the same.
    public static let reload = CacheMode(.reload)

    /// The network is not asked: a miss fails with `notCached`.
    public static let cacheOnly = CacheMode(.cacheOnly)

    /// As ``cacheElseNetwork``, with use for an entry that is past its time (RFC 5861): for so much longer it stands in
    /// for a network or a server that fails (no answer, 500, 502, 503 or 504), or is delivered at once while a run of
    /// its own fetches a new one. The response says so (``Response/isStale``).
    public static func cacheElseNetwork(
        staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero
    ) -> CacheMode {
        CacheMode(.cacheElseNetwork, staleIfError: staleIfError, staleWhileRevalidate: staleWhileRevalidate)
    }

    var reads: Bool { way != .reload }
    var asksNetwork: Bool { way != .cacheOnly }
}

import FerryCache

/// Whether answers of a request are kept, for how long, and what a kept one has to agree with.
///
///     var cachePolicy: CachePolicy { .timeToLive(.seconds(180), version: 2) }
///
/// What the server says of freshness (`max-age`, `no-cache`, `Expires`) has no part in it: the application knows how
/// old an answer may be. What it says of whose an answer is, and that it must not be stored, is respected.
public struct CachePolicy: Sendable {
    /// When an answer that is to be kept has to be on the disk.
    public enum Writing: Sendable, Hashable {
        /// Some time after the run: it does not wait.
        case asynchronous
        /// Before anybody is told of the result. It outlives the process then; only a loss of power can take it back.
        /// Where the deadline of the run passes first, the result does not wait.
        case synchronous
    }

    /// What is wanted of an entry.
    struct Terms: Sendable {
        var lifetime: Duration
        var version: Int
        var sensitiveData: CacheDigest
        var writing: Writing
    }

    /// `nil` when nothing is kept.
    let terms: Terms?

    /// Nothing is kept, and nothing is looked for.
    public static let none = CachePolicy(terms: nil)

    /// An answer is kept after it passed validation, and used again while it is not older than `lifetime`. A lifetime
    /// that is not positive keeps nothing.
    ///
    /// An entry of another `version` is a miss: raise it when the format of the answers changes. So is one of other
    /// `sensitiveData`, which is where to say whose the answer is (an account, a tenant) when the request does not show
    /// it; only a hash of it is kept.
    public static func timeToLive(
        _ lifetime: Duration, version: Int = 0, sensitiveData: String? = nil, write: Writing = .asynchronous
    ) -> CachePolicy {
        if lifetime <= .zero { return .none }
        let sensitiveData = sensitiveData.map { CacheDigest(of: $0) } ?? .none
        return CachePolicy(
            terms: Terms(lifetime: lifetime, version: version, sensitiveData: sensitiveData, writing: write))
    }
}

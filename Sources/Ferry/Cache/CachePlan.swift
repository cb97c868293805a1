import FerryCache

/// What the cache needs to know of a run, whatever the request's type.
struct CachePlan: Sendable {
    let key: CacheKey
    let terms: CacheTerms
    let writing: CachePolicy.Writing
    var mode: CacheMode
    /// The run's own URL.
    let url: String
    let isForeign: Bool
    /// The key or the sensitive data say whose the answer is.
    let isOwned: Bool

    var hasSensitiveData: Bool { terms.sensitiveData != .none }
}

/// Where a request goes, and what tells its answer from those of other requests.
struct CacheTarget {
    let url: String
    let isForeign: Bool
    /// `nil` when the body cannot be looked at without reading a file or a stream.
    var key: CacheKey?
    var hasCredentials = false
}

extension AgentCore {
    /// Whether there is more to be done for a request than to send it.
    func asksCache<R: Request>(_ request: R) -> Bool {
        (cache != nil && request.cachePolicy.terms != nil) || request.coalesces
    }

    /// `nil` when nothing is kept of it.
    func plan<R: Request>(for request: R, _ target: CacheTarget, _ mode: CacheMode) -> CachePlan? {
        guard let cache, let terms = request.cachePolicy.terms, let key = target.key else { return nil }
        let wanted = CacheTerms(
            time: terms.lifetime.microseconds, version: Int64(terms.version), sensitiveData: terms.sensitiveData,
            applicationVersion: cache.applicationVersion)
        return CachePlan(
            key: key, terms: wanted, writing: terms.writing, mode: mode, url: target.url,
            isForeign: target.isForeign, isOwned: target.hasCredentials || terms.sensitiveData != .none)
    }
}

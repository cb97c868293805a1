/// What a stored response that matches a request is worth to it (RFC 9111, 4 and 4.2.4).
enum ReuseRules {
    /// A stored response, as far as its reuse depends on it. Times are microseconds.
    struct Stored: Sendable {
        /// `nil` where the clock was set back.
        var age: Int64?
        var lifetime: Int64
        var directives: ResponseDirectives
        var hasValidator = false
    }

    /// What the start of the run allows beyond the fields, in microseconds past the lifetime.
    struct Allowance: Sendable {
        var staleIfError: Int64 = 0
        var staleWhileRevalidate: Int64 = 0
    }

    enum Verdict: Sendable, Equatable {
        /// It answers the request.
        case serve
        /// It is past its time and answers the request all the same, as the request says (RFC 9111, 5.2.1.2).
        case serveStale
        /// Likewise, while another one is fetched (RFC 5861, 3).
        case serveWhileRevalidating
        /// The server is asked first. `standsIn` says whether it may answer where the server fails (RFC 5861, 4).
        case validate(standsIn: Bool)
    }

    /// RFC 9111, 4, with the directives of the request (5.2.1) and of the response (5.2.2).
    static func verdict(
        on stored: Stored, _ request: RequestCacheControl, _ allowance: Allowance, isShared: Bool
    ) -> Verdict {
        guard let age = stored.age else { return .validate(standsIn: false) }
        let directives = stored.directives
        let past = age - stored.lifetime
        // RFC 9111, 5.2.2.2, 5.2.2.8 and 5.2.2.10
        let isBound =
            directives.noCache || directives.mustRevalidate
            || (isShared && (directives.proxyRevalidate || directives.sharedMaxAge != nil))
        let forFailures = max(allowance.staleIfError, directives.staleIfError * Freshness.second)
        let standsIn = !isBound && !request.noCache && past <= forFailures && forFailures > 0
        if request.noCache || directives.noCache { return .validate(standsIn: standsIn) }
        if let maxAge = request.maxAge, age > maxAge.microseconds {
            // Together they say how much older it may be (RFC 9111, 5.2.1.2).
            let mayBeStale = request.maxStale.map { age - maxAge.microseconds <= $0.microseconds } ?? false
            if !mayBeStale || isBound { return .validate(standsIn: standsIn) }
        }
        if past < 0 {
            guard let least = request.minFresh, -past < least.microseconds else { return .serve }
            return .validate(standsIn: standsIn)
        }
        if isBound || request.minFresh != nil { return .validate(standsIn: standsIn) }
        if let maxStale = request.maxStale, past <= maxStale.microseconds { return .serveStale }
        let meanwhile = max(
            allowance.staleWhileRevalidate, directives.staleWhileRevalidate * Freshness.second)
        if meanwhile > 0 && past <= meanwhile && request.maxAge == nil { return .serveWhileRevalidating }
        return .validate(standsIn: standsIn)
    }
}

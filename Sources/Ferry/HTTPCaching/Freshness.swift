import FerryCache

/// The age of a response and its freshness lifetime (RFC 9111, 4.2). Times are in microseconds.
enum Freshness {
    /// The freshness lifetime of a response, and its source.
    enum Lifetime: Sendable, Equatable {
        /// From `s-maxage`, `max-age` or `Expires` (RFC 9111, 4.2.1).
        case explicit(Int64)
        /// From the age of the representation (RFC 9111, 4.2.2).
        case heuristic(Int64)
        /// Not known.
        case unknown

        var microseconds: Int64 {
            switch self {
            case .explicit(let time), .heuristic(let time): time
            case .unknown: 0
            }
        }
    }

    /// The freshness lifetime of a response (RFC 9111, 4.2.1 and 4.2.2).
    ///
    /// An invalid field means that the response is already stale (RFC 9111, 5.3): an `Expires` that is not a date, or
    /// several different ones.
    static func lifetime(
        status: Int, _ headers: Headers, _ directives: ResponseDirectives, isShared: Bool, responseTime: CacheTime
    ) -> Lifetime {
        if isShared, let seconds = directives.sharedMaxAge { return .explicit(seconds * second) }
        if let seconds = directives.maxAge { return .explicit(seconds * second) }
        let received = HTTPDate(secondsSince1970: responseTime / second)
        // Without a date, the time of its arrival counts (RFC 9110, 6.6.1).
        let date = headers["Date"].flatMap { HTTPDate($0, now: received, ignoresCase: true) } ?? received
        let expires = Set(headers.values(of: "Expires"))
        if let text = expires.first {
            guard expires.count == 1, let end = HTTPDate(text, now: received, ignoresCase: true) else {
                return .explicit(0)
            }
            return .explicit(max(0, end.secondsSince1970 - date.secondsSince1970) * second)
        }
        guard directives.isPublic || StatusCodes.areHeuristicallyCacheable.contains(status),
            let text = headers["Last-Modified"], let modified = HTTPDate(text, now: received, ignoresCase: true)
        else { return .unknown }
        let age = date.secondsSince1970 - modified.secondsSince1970
        return .heuristic(min(max(age, 0) * second / 10, 24 * 60 * 60 * second))
    }

    /// The age of a response on arrival (RFC 9111, 4.2.3): its `Age` plus the time that it took to arrive, or the age
    /// by its `Date`, whichever is greater.
    static func initialAge(_ headers: Headers, requestTime: CacheTime, responseTime: CacheTime) -> Int64 {
        let received = HTTPDate(secondsSince1970: responseTime / second)
        let date = headers["Date"].flatMap { HTTPDate($0, now: received, ignoresCase: true) } ?? received
        let apparent = max(0, received.secondsSince1970 - date.secondsSince1970) * second
        let delay = max(0, responseTime - requestTime)
        return max(apparent, age(headers) * second + delay)
    }

    /// The value of the `Age` field in seconds: its first member if that is a number; otherwise the field is ignored
    /// (RFC 9111, 5.1).
    static func age(_ headers: Headers) -> Int64 {
        guard let first = headers.values(of: "Age").first else { return 0 }
        let member = first.utf8.prefix { $0 != 0x2C }.filter { $0 != 0x20 && $0 != 0x09 }
        return deltaSeconds(String(decoding: member, as: UTF8.self)) ?? 0
    }

    /// The current age (RFC 9111, 4.2.3); `nil` if the clock was set back since the arrival.
    static func currentAge(initial: Int64, responseTime: CacheTime, now: CacheTime) -> Int64? {
        let (resident, overflow) = now.subtractingReportingOverflow(responseTime)
        if overflow || resident < 0 { return nil }
        let (age, isTooLarge) = initial.addingReportingOverflow(resident)
        return isTooLarge ? .max : age
    }

    static let second: Int64 = 1_000_000
}

/// The meaning of status codes for a cache.
enum StatusCodes {
    /// Statuses that are heuristically cacheable (RFC 9110, 15.1).
    static let areHeuristicallyCacheable: Set<Int> = [
        200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
    ]

    /// Statuses that are understood here, as `must-understand` requires (RFC 9111, 5.2.2.3).
    static let areUnderstood: Set<Int> = areHeuristicallyCacheable.union([
        201, 202, 205, 302, 303, 307, 400, 401, 402, 403, 406, 407, 408, 409, 411, 412, 413, 415, 416, 417, 421, 422,
        426, 428, 429, 431, 451, 500, 502, 503, 504, 505, 511,
    ])

    /// Statuses of a failing server, which a stored response may replace (RFC 5861, 4).
    static let areServerFailures: Set<Int> = [500, 502, 503, 504]
}

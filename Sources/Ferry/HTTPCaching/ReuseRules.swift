import FerryCache

/// Decides how a stored response that matches a request may be used (RFC 9111, 4 and 4.2.4).
enum ReuseRules {
    /// The properties of a stored response that its reuse depends on. Times are in microseconds.
    struct Stored: Sendable {
        /// `nil` if the clock was set back.
        var age: Int64?
        let lifetime: Int64
        // The directives that matter here, without the lists of names: copies of those cost a tenth of a validation.
        fileprivate let noCache, mustRevalidate, isBoundIfShared, isImmutable: Bool
        fileprivate let staleIfError: Int64
        var staleWhileRevalidate: Int64

        @inline(__always)
        init(age: Int64?, lifetime: Int64, directives: borrowing ResponseDirectives) {
            (self.age, self.lifetime) = (age, lifetime)
            (noCache, mustRevalidate) = (directives.noCache, directives.mustRevalidate)
            isBoundIfShared = directives.proxyRevalidate || directives.sharedMaxAge != nil
            isImmutable = directives.isImmutable
            staleIfError = directives.staleIfError * Freshness.second
            staleWhileRevalidate = directives.staleWhileRevalidate * Freshness.second
        }

        /// Whether the result of a validation, which always takes some time, may serve other runs that wait for it
        /// (RFC 9111, 4). It may not if it is stale at once, as with `max-age=0`.
        func servesOthersOnceValidated(
            _ request: RequestCacheControl, _ allowance: Allowance, isShared: Bool
        ) -> Bool {
            var validated = self
            validated.age = 1
            if case .validate = ReuseRules.verdict(on: validated, request, allowance, isShared: isShared) {
                return false
            }
            return true
        }
    }

    /// What the start of the run allows in addition to the fields, in microseconds after the lifetime.
    struct Allowance: Sendable {
        var staleIfError: Int64 = 0
        var staleWhileRevalidate: Int64 = 0
    }

    enum Verdict: Sendable, Equatable {
        /// The response is used.
        case serve
        /// The response is stale and is used nevertheless, because the request permits it (RFC 9111, 5.2.1.2).
        case serveStale
        /// The response is stale and is used, while a new one is fetched in the background (RFC 5861, 3).
        case serveWhileRevalidating
        /// The response is validated first. `standsIn` says whether it may be used if the server fails (RFC 5861, 4).
        case validate(standsIn: Bool)
    }

    /// The decision of RFC 9111, 4, with the directives of the request (5.2.1) and of the response (5.2.2).
    static func verdict(
        on stored: Stored, _ request: RequestCacheControl, _ allowance: Allowance, isShared: Bool
    ) -> Verdict {
        guard let age = stored.age else { return .validate(standsIn: false) }
        let past = age - stored.lifetime
        // RFC 9111, 5.2.2.2, 5.2.2.8 and 5.2.2.10
        let isBound = stored.noCache || stored.mustRevalidate || (isShared && stored.isBoundIfShared)
        let forFailures = max(allowance.staleIfError, stored.staleIfError)
        let standsIn = !isBound && !request.noCache && past <= forFailures && forFailures > 0
        if request.noCache || stored.noCache { return .validate(standsIn: standsIn) }
        // A fresh `immutable` response does not change, whatever its age is (RFC 8246, 2).
        let isFixed = stored.isImmutable && past < 0
        if let maxAge = request.maxAge, age > maxAge.microseconds, !isFixed {
            // Both together limit how stale it may be (RFC 9111, 5.2.1.2).
            let mayBeStale = request.maxStale.map { age - maxAge.microseconds <= $0.microseconds } ?? false
            if !mayBeStale || isBound { return .validate(standsIn: standsIn) }
        }
        if past < 0 {
            guard let least = request.minFresh, -past < least.microseconds else { return .serve }
            return .validate(standsIn: standsIn)
        }
        if isBound || request.minFresh != nil { return .validate(standsIn: standsIn) }
        if let maxStale = request.maxStale, past <= maxStale.microseconds { return .serveStale }
        let meanwhile = max(allowance.staleWhileRevalidate, stored.staleWhileRevalidate)
        if meanwhile > 0 && past <= meanwhile && request.maxAge == nil { return .serveWhileRevalidating }
        return .validate(standsIn: standsIn)
    }
}

/// Decides how a complete stored response serves a range request (RFC 9111, 4; RFC 9110, 14).
enum RangeRules {
    enum Part: Sendable, Equatable {
        /// The whole response: the field has no known range unit, or its condition does not hold (RFC 9110, 14.2).
        case whole
        /// These bytes.
        case part(Range<Int>)
        /// The request goes to the server: it has several ranges, or none that the body satisfies.
        case ofServer
    }

    /// The part of a body of `count` bytes that a request asks for.
    static func part(_ request: Headers, of count: Int, _ stored: Headers) -> Part {
        guard let value = request["Range"] else { return .whole }
        if let condition = request["If-Range"], !holds(condition, stored) { return .whole }
        let text = value.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map(lowercased)
        let unit = Array("bytes=".utf8)
        // Only the server knows other units.
        guard text.starts(with: unit), !text.contains(0x2C) else { return .ofServer }
        let ends = text.dropFirst(unit.count).split(separator: 0x2D, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return .ofServer }
        let (first, last) = (number(ends[0]), number(ends[1]))
        if ends[0].isEmpty {
            guard let last, last > 0, count > 0 else { return .ofServer }
            return .part(max(0, count - last)..<count)
        }
        guard let first, first < count, last != nil || ends[1].isEmpty else { return .ofServer }
        if let last, last < first { return .ofServer }
        return .part(first..<min(count, (last ?? count) &+ 1))
    }

    /// Whether the condition of an `If-Range` field holds (RFC 9110, 13.1.5), by the strong comparison. A date must be
    /// equal, and is strong if the response was generated at least a second after it (8.8.2.2).
    private static func holds(_ condition: String, _ stored: Headers) -> Bool {
        if condition.contains("\"") {
            guard let tag = Validators(stored).tag else { return false }
            return tag.stronglyMatches(EntityTag(text: condition))
        }
        let now = HTTPDate(secondsSince1970: 0)
        guard let text = stored["Last-Modified"], condition == text, let modified = HTTPDate(text, now: now),
            let date = stored["Date"].flatMap({ HTTPDate($0, now: now) })
        else { return false }
        return date.secondsSince1970 > modified.secondsSince1970
    }

    /// A number up to 2⁴⁰; `nil` for larger ones, which are no body lengths.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        var value = 0
        for digit in digits { value = min(value * 10 + Int(digit - 0x30), 1 << 40) }
        return value
    }

    /// The fields of a 206 response with this part of a stored body (RFC 9110, 15.3.7).
    static func fields(_ stored: Headers, _ part: Range<Int>, of count: Int) -> Headers {
        var headers = stored
        headers["Content-Range"] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)"
        headers["Content-Length"] = String(part.count)
        return headers
    }
}

/// Decides which stored response of a URL matches a request (RFC 9111, 4.1; RFC 9110, 12.5.5).
enum VaryRules {
    /// More names are treated as `*`, because each lookup would have to read all these fields.
    static let most = 64

    /// The variance of a request that matches no stored response.
    static let unknown = CacheDigest(of: "a variance that is not known")

    /// The names in `Vary`, in lower case and without duplicates. `nil` if it contains `*`, which no request matches,
    /// or more names than ``most``.
    static func names(_ headers: Headers) -> [String]? {
        var names: [String] = []
        for value in headers.values(of: "Vary") {
            for name in fieldNames(value) where !names.contains(name) {
                if name == "*" || names.count == most { return nil }
                names.append(name)
            }
        }
        return names
    }

    /// The names that a stored response varies by. A content coding that Ferry decoded does not count. One that was not
    /// decoded is only for requests that accept it, whatever `Vary` says.
    static func storedNames(_ response: Headers, isDecoded: Bool) -> [String] {
        var names = (names(response) ?? []).filter { $0 != "accept-encoding" }
        let codings = response["Content-Encoding"].map(fieldNames) ?? []
        if codings.contains(where: { $0 != "identity" }) && !isDecoded { names.append("accept-encoding") }
        return names
    }

    /// A digest of the values that a request has for these names, after normalizing equivalent values. Only the digest
    /// is stored, because a value may be secret.
    static func variance(of names: [String], _ value: (String) -> String?) -> CacheDigest {
        if names.isEmpty { return .none }
        var bytes: [UInt8] = []
        for name in names {
            bytes.appendCounted(name)
            let value = value(name).map { normalized($0, of: name) }
            bytes.append(value == nil ? 0 : 1)
            bytes.appendCounted(value ?? "")
        }
        return CacheDigest(of: bytes)
    }

    /// A value in the form for comparison (RFC 9111, 4.1): several lines are one list, without white space around its
    /// commas. For languages, neither case nor the order of equal weights matters.
    static func normalized(_ value: String, of name: String) -> String {
        var members: [[UInt8]] = []
        var member: [UInt8] = []
        var isQuoted = false
        for byte in value.utf8 {
            if byte == 0x22 { isQuoted.toggle() }
            if byte == 0x2C && !isQuoted {
                members.append(trimmed(member))
                member = []
            } else {
                member.append(byte)
            }
        }
        members.append(trimmed(member))
        members.removeAll { $0.isEmpty }
        if name == "accept-language" || name == "accept-encoding" || name == "accept-charset" {
            members = members.map { $0.filter { $0 != 0x20 && $0 != 0x09 }.map(lowercased) }
            members.sort { $0.lexicographicallyPrecedes($1) }
        }
        return String(decoding: Array(members.joined(separator: [0x2C])), as: UTF8.self)
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return Array(bytes)
    }
}

/// The age of a response and its freshness lifetime (RFC 9111, 4.2). Times are in microseconds.
enum Freshness {
    /// The freshness lifetime of a response, and its source.
    enum Lifetime: Sendable, Equatable {
        /// From `s-maxage`, `max-age` or `Expires` (RFC 9111, 4.2.1).
        case explicit(Int64)
        /// From the age of the representation (RFC 9111, 4.2.2).
        case heuristic(Int64)
        /// The response has no lifetime.
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

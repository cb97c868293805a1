import FerryTransport

/// The directives of the `Cache-Control` fields of one message (RFC 9111, 5.2), as they are written.
///
/// A list is read member by member, and a comma inside a quoted string does not end a member. An unterminated quotation
/// mark quotes nothing: otherwise a malformed extension could hide a `no-store` after it.
struct CacheDirectiveList: Sendable {
    /// One directive.
    struct Member: Sendable, Equatable {
        /// In lower case, because names are compared without regard to case.
        var name: String
        /// `nil` without an argument.
        var argument: Argument?

        /// The argument as a number of seconds; `nil` if it is none.
        var seconds: Int64? {
            switch argument {
            case .token(let text)?, .quoted(let text)?: deltaSeconds(text)
            case .broken?, nil: nil
            }
        }
    }

    /// The argument of a directive. A token and a quoted string are equivalent (RFC 9111, 5.2).
    enum Argument: Sendable, Equatable {
        case token(String)
        case quoted(String)
        /// White space around the equals sign, or text after the closing quotation mark.
        case broken
    }

    private(set) var members: [Member] = []

    /// The directives of these field values, in order.
    init(_ values: [String]) {
        for var value in values { value.withUTF8 { read($0) } }
    }

    private mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var at = 0
        // After an unterminated quotation mark no later one is terminated either. To search for their ends would take
        // quadratic time.
        var mayClose = true
        while at < bytes.count {
            let start = at
            // The name without its quoted strings; `nil` if it has none.
            var unquoted: [UInt8]?
            while at < bytes.count, bytes[at] != 0x2C, bytes[at] != 0x3D {
                if bytes[at] == 0x22, let end = Self.closingQuote(bytes, at, &mayClose) {
                    // A quoted string is not a directive, and its content is ignored.
                    unquoted = (unquoted ?? Array(bytes[start..<at])) + [0x22]
                    at = end + 1
                } else {
                    unquoted?.append(bytes[at])
                    at += 1
                }
            }
            let end = at
            let name = unquoted?.withUnsafeBufferPointer { Self.name($0[...]) } ?? Self.name(bytes[start..<end])
            var argument: Argument?
            if at < bytes.count, bytes[at] == 0x3D {
                at += 1
                argument = Self.argument(bytes, &at, &mayClose)
                // A quoted string ends with its mark.
                if end > start, Self.isSpace(bytes[end - 1]) { argument = .broken }
            }
            // After the comma.
            at += 1
            if !name.isEmpty { members.append(Member(name: name, argument: argument)) }
        }
    }

    /// Without the white space around it, in lower case.
    private static func name(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        let bare = trimmed(bytes)
        if bare.allSatisfy({ $0 < 0x41 || $0 > 0x5A }) { return String(decoding: bare, as: UTF8.self) }
        return String(decoding: bare.map(lowercased), as: UTF8.self)
    }

    /// Reads up to the comma or the end.
    private static func argument(
        _ bytes: UnsafeBufferPointer<UInt8>, _ at: inout Int, _ mayClose: inout Bool
    ) -> Argument {
        if at < bytes.count, bytes[at] == 0x22, let end = closingQuote(bytes, at, &mayClose) {
            var text: [UInt8] = []
            var index = at + 1
            while index < end {
                if bytes[index] == 0x5C, index + 1 < end { index += 1 }
                text.append(bytes[index])
                index += 1
            }
            at = end + 1
            let rest = bytes[at...].prefix { $0 != 0x2C }
            at += rest.count
            return rest.allSatisfy(isSpace) ? .quoted(String(decoding: text, as: UTF8.self)) : .broken
        }
        let raw = bytes[at...].prefix { $0 != 0x2C }
        at += raw.count
        if raw.first.map(isSpace) ?? true { return .broken }
        return .token(String(decoding: trimmed(raw), as: UTF8.self))
    }

    /// The end of the quotation that begins at `start`; `nil` if there is none.
    private static func closingQuote(
        _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ mayClose: inout Bool
    ) -> Int? {
        guard mayClose else { return nil }
        var index = start + 1
        while index < bytes.count {
            if bytes[index] == 0x22 { return index }
            index += bytes[index] == 0x5C ? 2 : 1
        }
        mayClose = false
        return nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Slice<UnsafeBufferPointer<UInt8>> {
        var bytes = bytes.drop(while: isSpace)
        while let last = bytes.last, isSpace(last) { bytes = bytes.dropLast() }
        return bytes
    }

    /// The seconds of every directive with this name, in order; `nil` for an invalid number.
    func seconds(of name: String) -> [Int64?] { members.filter { $0.name == name }.map(\.seconds) }

    func contains(_ name: String) -> Bool { members.contains { $0.name == name } }
}

/// A number of seconds (RFC 9111, 1.2.2): only digits. A number that is too large becomes the largest one that is used,
/// 2³¹ seconds.
func deltaSeconds(_ text: String) -> Int64? {
    let digits = text.utf8
    guard !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    var value: Int64 = 0
    for digit in digits {
        value = value * 10 + Int64(digit - 0x30)
        if value >= mostDeltaSeconds { return mostDeltaSeconds }
    }
    return value
}

private let mostDeltaSeconds: Int64 = 1 << 31

/// The caching directives of a response (RFC 9111, 5.2.2; RFC 5861; RFC 8246).
///
/// Of several directives with one name the most restrictive counts, and an invalid argument permits nothing (RFC 9111,
/// 4.2.1): an invalid field never makes a response fresher.
struct ResponseDirectives: Sendable, Equatable {
    /// In seconds; `nil` without the directive (RFC 9111, 5.2.2.1).
    var maxAge: Int64?
    /// In seconds, for shared caches; `nil` without the directive (RFC 9111, 5.2.2.10).
    var sharedMaxAge: Int64?
    /// RFC 9111, 5.2.2.5
    var noStore = false
    /// RFC 9111, 5.2.2.4, without field names, or with unquoted names.
    var noCache = false
    /// The fields that `no-cache="…"` names, in lower case: they are not reused without a validation.
    var noCacheFields: [String] = []
    /// RFC 9111, 5.2.2.7, without field names.
    var isPrivate = false
    /// The fields that `private="…"` names, in lower case: a shared cache does not store them.
    var privateFields: [String] = []
    /// RFC 9111, 5.2.2.9
    var isPublic = false
    /// RFC 9111, 5.2.2.2
    var mustRevalidate = false
    /// RFC 9111, 5.2.2.8
    var proxyRevalidate = false
    /// RFC 9111, 5.2.2.3
    var mustUnderstand = false
    /// RFC 8246, 2
    var isImmutable = false
    /// In seconds after the expiry (RFC 5861, 3).
    var staleWhileRevalidate: Int64 = 0
    /// In seconds after the expiry (RFC 5861, 4).
    var staleIfError: Int64 = 0

    /// The directives of a response with these fields.
    init(_ headers: Headers) { self.init(CacheDirectiveList(headers.values(of: "Cache-Control"))) }

    init(_ list: CacheDirectiveList) {
        maxAge = Self.least(list.seconds(of: "max-age"))
        sharedMaxAge = Self.least(list.seconds(of: "s-maxage"))
        staleWhileRevalidate = Self.least(list.seconds(of: "stale-while-revalidate")) ?? 0
        staleIfError = Self.least(list.seconds(of: "stale-if-error")) ?? 0
        for member in list.members {
            switch member.name {
            case "no-store": noStore = true
            case "no-cache": Self.read(member, &noCache, &noCacheFields)
            case "private": Self.read(member, &isPrivate, &privateFields)
            case "public": isPublic = true
            case "must-revalidate": mustRevalidate = true
            case "proxy-revalidate": proxyRevalidate = true
            case "must-understand": mustUnderstand = true
            case "immutable": isImmutable = true
            default: break
            }
        }
    }

    /// Whether a shared cache may use the response to a request with `Authorization` for others (RFC 9111, 3.5).
    var permitsSharing: Bool { isPublic || mustRevalidate || sharedMaxAge != nil }

    private static func least(_ values: [Int64?]) -> Int64? { values.map { $0 ?? 0 }.min() }

    private static func read(_ member: CacheDirectiveList.Member, _ isWhole: inout Bool, _ names: inout [String]) {
        guard case .quoted(let text)? = member.argument else { return isWhole = true }
        let found = fieldNames(text)
        if found.isEmpty { isWhole = true }
        names += found
    }
}

/// The members of a list of field names, in lower case.
func fieldNames(_ text: String) -> [String] {
    text.utf8.split(separator: 0x2C).compactMap { word in
        let bare = word.filter { $0 != 0x20 && $0 != 0x09 }.map(lowercased)
        return bare.isEmpty ? nil : String(decoding: bare, as: UTF8.self)
    }
}

/// The caching directives of a request, from its `Cache-Control` field (RFC 9111, 5.2.1).
///
///     var headers: Headers {
///         var headers = Headers()
///         headers.cacheControl.maxStale = .seconds(60)
///         return headers
///     }
///
/// The agent's cache obeys them if the policy is ``CachePolicy/http(shared:sensitiveData:write:)``. The field is also
/// sent to the server, and caches on the way obey it, too. Durations are rounded to whole seconds.
public struct RequestCacheControl: Sendable, Hashable, CustomStringConvertible {
    /// The maximum age of the response (RFC 9111, 5.2.1.1). The default is `nil`, any age. An `immutable` response may
    /// be older while it is fresh (RFC 8246, 2).
    public var maxAge: Duration?
    /// How long after its expiry the response may be used (RFC 9111, 5.2.1.2). The default is `nil`, not at all;
    /// ``anyTime`` means any time.
    public var maxStale: Duration?
    /// How long the response must stay fresh (RFC 9111, 5.2.1.3). The default is `nil`.
    public var minFresh: Duration?
    /// Whether a stored response must be validated before it is used (RFC 9111, 5.2.1.4). The default is `false`.
    public var noCache = false
    /// Whether the response must not be stored (RFC 9111, 5.2.1.5). The default is `false`.
    public var noStore = false
    /// Whether the network must not be used: without a stored response the status is 504 (RFC 9111, 5.2.1.7). The
    /// default is `false`.
    public var onlyIfCached = false

    /// For ``maxStale``: any time after the expiry.
    public static let anyTime = Duration.seconds(mostDeltaSeconds)

    /// Creates a value without directives.
    public init() {}

    /// The directives of these fields. An invalid number is read as the strictest one, so that it never permits an
    /// older response.
    init(_ headers: Headers) { self.init(cacheControl: headers["Cache-Control"], pragma: headers["Pragma"]) }

    /// The same, for the values of both fields.
    init(cacheControl: String?, pragma: @autoclosure () -> String?) {
        guard let cacheControl else {
            // `Pragma: no-cache` counts if there is no Cache-Control (RFC 9111, 5.4).
            noCache = pragma().map { CacheDirectiveList([$0]).contains("no-cache") } ?? false
            return
        }
        // The usual value need not be parsed.
        if cacheControl == "no-cache" {
            noCache = true
            return
        }
        var bound: Int64?
        var hasBound = false
        for member in CacheDirectiveList([cacheControl]).members {
            switch member.name {
            case "max-age": maxAge = min(maxAge ?? .seconds(mostDeltaSeconds), .seconds(member.seconds ?? 0))
            case "min-fresh": minFresh = max(minFresh ?? .zero, .seconds(member.seconds ?? mostDeltaSeconds))
            case "max-stale" where member.argument == nil: maxStale = Self.anyTime
            case "max-stale":
                hasBound = true
                if let seconds = member.seconds { bound = min(bound ?? seconds, seconds) }
            case "no-cache": noCache = true
            case "no-store": noStore = true
            case "only-if-cached": onlyIfCached = true
            default: break
            }
        }
        if hasBound { maxStale = bound.map { min(.seconds($0), maxStale ?? Self.anyTime) } }
    }

    /// The value of a `Cache-Control` field, like `max-stale=60, no-store`; empty without directives.
    public var description: String {
        var words: [String] = []
        if let maxAge { words.append("max-age=\(Self.number(maxAge))") }
        if let maxStale { words.append(maxStale >= Self.anyTime ? "max-stale" : "max-stale=\(Self.number(maxStale))") }
        if let minFresh { words.append("min-fresh=\(Self.number(minFresh))") }
        if noCache { words.append("no-cache") }
        if noStore { words.append("no-store") }
        if onlyIfCached { words.append("only-if-cached") }
        return words.joined(separator: ", ")
    }

    private static func number(_ duration: Duration) -> Int64 {
        min(max(duration.components.seconds, 0), mostDeltaSeconds)
    }
}

extension Headers {
    /// The directives of a request's `Cache-Control` field (RFC 9111, 5.2.1). Setting them replaces the whole field,
    /// including other directives; without directives the field is removed.
    public var cacheControl: RequestCacheControl {
        get { RequestCacheControl(self) }
        set {
            let value = newValue.description
            self["Cache-Control"] = value.isEmpty ? nil : value
        }
    }
}

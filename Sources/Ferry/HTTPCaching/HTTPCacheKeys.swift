import FerryCache
import FerrySynchronization
import FerryTransport
import Glibc

/// The key of a response stored under RFC 9111: its URL (RFC 9111, 2), in a part of the cache that belongs to the
/// credentials of the request. A private cache has one user, but an agent may act for many.
struct HTTPCacheKey {
    /// A field with a secret, or a credential that is in no field.
    struct Secret: Hashable, Sendable {
        var name: String
        var value: String
    }

    /// What is the same in all keys of an agent.
    struct Prefix {
        /// Of requests to any address, and of those to the public internet only: a response from elsewhere must not
        /// serve these.
        let any, publicOnly: [UInt8]
    }

    /// The common prefix of all URLs of one user.
    private let owner: [UInt8]
    private let prefix: Prefix
    private let isPublicOnly: Bool
    private let terms: CachePolicy.HTTPTerms
    private let secrets: [Secret]

    init(_ prefix: Prefix, isPublicOnly: Bool, _ terms: CachePolicy.HTTPTerms, _ secrets: [Secret]) {
        (self.prefix, self.isPublicOnly, self.terms, self.secrets) = (prefix, isPublicOnly, terms, secrets)
        let prefix = isPublicOnly ? prefix.publicOnly : prefix.any
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefix.count + 40 + secrets.count * 128)
        bytes += prefix
        bytes.append(terms.isShared ? 1 : 0)
        if terms.sensitiveData != .none { terms.sensitiveData.withBytes { bytes.append(contentsOf: $0) } }
        bytes.append(UInt8(clamping: secrets.count))
        for secret in secrets.count > 1 ? secrets.sorted(by: Self.precedes) : secrets {
            bytes.appendCounted(secret.name)
            bytes.appendCounted(secret.value)
        }
        owner = bytes
    }

    private static func precedes(_ left: Secret, _ right: Secret) -> Bool {
        left.name == right.name ? left.value < right.value : left.name < right.name
    }

    /// The key of a URL, without its fragment, which is not part of the request (RFC 9110, 4.2.5). All spellings of its
    /// origin have the same key.
    func key(_ url: String) -> CacheKey { Self.key(CanonicalOrigin.apply(to: url), of: owner) }

    /// The keys of these URLs for the same user and for nobody, in all forms of the policies: what changes for one form
    /// changes for all. `sent` are all secrets of the request, also those that are in no key of this form.
    func relatives(_ urls: [String], sent: [Secret]) -> Set<CacheKey> {
        let others = sent.filter { $0.name != "authorization" }
        var keys = Set(urls.map(key))
        for (isShared, own) in [(true, others), (false, sent)] {
            for data in Set([terms.sensitiveData, .none]) {
                let form = CachePolicy.HTTPTerms(isShared: isShared, sensitiveData: data, writing: terms.writing)
                for secrets in Set([own, others, secrets, sent.filter { $0.name == "host" }, []]) {
                    for isPublicOnly in [false, true] {
                        let key = HTTPCacheKey(prefix, isPublicOnly: isPublicOnly, form, secrets)
                        keys.formUnion(urls.map(key.key))
                    }
                }
            }
        }
        return keys
    }

    /// The same for a request without secrets, in one step.
    static func publicKey(
        _ joined: String, isCanonical: Bool, _ prefix: Prefix, isPublicOnly: Bool, _ terms: CachePolicy.HTTPTerms
    ) -> CacheKey {
        let url = isCanonical ? joined : CanonicalOrigin.apply(to: joined)
        if terms.sensitiveData != .none {
            return HTTPCacheKey(prefix, isPublicOnly: isPublicOnly, terms, []).key(url)
        }
        return key(url, of: isPublicOnly ? prefix.publicOnly : prefix.any, (terms.isShared ? 1 : 0, 0))
    }

    @inline(__always)
    private static func key(_ url: String, of owner: [UInt8], _ more: (UInt8, UInt8)? = nil) -> CacheKey {
        var url = url
        return url.withUTF8 { bytes in
            let start = UnsafeRawBufferPointer(bytes).baseAddress
            let fragment = start.flatMap { memchr($0, 0x23, bytes.count) }
            let end = fragment.map { UnsafeRawPointer($0) - start! } ?? bytes.count
            // Of the ways to fill an array, the one that takes the least time here.
            var material = [UInt8](repeating: 0, count: owner.count + (more == nil ? 0 : 2) + end)
            material.withUnsafeMutableBytes { material in
                owner.withUnsafeBytes { material.copyMemory(from: $0) }
                if let more { (material[owner.count], material[owner.count + 1]) = more }
                let rest = UnsafeMutableRawBufferPointer(rebasing: material[(material.count - end)...])
                rest.copyMemory(from: UnsafeRawBufferPointer(start: start, count: end))
            }
            return CacheKey(material)
        }
    }
}

/// The target of a request, as far as it is known before sending. It is large, so a run keeps it in its plan only.
struct HTTPCacheTarget: Sendable {
    let url: String
    /// The key of a plain GET; `nil` for any other request, or if adapters or a token may change it.
    let key: CacheKey?
    /// Whether its fields say how it uses the cache (RFC 9111, 5.2.1 and 5.4), and their values.
    let hasDirectives: Bool
    let cacheControl: String?
    /// `nil` also if it does not matter, because there is `Cache-Control`.
    let pragma: String?
    /// What was read of the request, so that it is built from the same values; `nil` if the request was built before.
    let reading: RequestReading?

    /// A target without a key.
    init(url: String, _ reading: RequestReading? = nil) {
        (self.url, key, hasDirectives, cacheControl, pragma) = (url, nil, false, nil, nil)
        self.reading = reading
    }

    init(_ found: consuming HTTPReading, _ key: CacheKey?, directives: (cacheControl: String?, pragma: String?)?) {
        (url, self.key) = (found.url, key)
        hasDirectives = directives != nil
        (cacheControl, pragma) = (directives?.cacheControl, directives?.pragma)
        reading = found.reading
    }
}

extension AgentCore {
    /// The terms of the HTTP cache for a request, if it uses that: then it can invalidate stored responses (RFC 9111,
    /// 4.4), however it is sent.
    func httpTerms<R: Request>(of request: R) -> CachePolicy.HTTPTerms? {
        cache == nil ? nil : cachePolicy(of: request).http
    }

    /// Whether a response that varies by these fields depends on cookies of the jar, which only the transport knows.
    func addsCookies(to names: [String]) -> Bool { names.contains("cookie") && hasCookies }

    /// The target of a request, and its key.
    func httpTarget<R: Request>(
        of request: R, _ terms: CachePolicy.HTTPTerms, at servers: Servers, in cache: ResponseCache
    ) throws(RequestError) -> HTTPCacheTarget {
        if let prebuilt = request.prebuiltRequest {
            let reading = RequestReading(
                prebuilt, of: request, joined: try builder.join(prebuilt.url),
                isPublicOnly: builder.isPublicOnly(request), redirectPolicy: request.redirectPolicy)
            return HTTPCacheTarget(url: reading.joined.url, reading)
        }
        let found = try builder.httpTarget(request, isShared: terms.isShared, at: servers)
        let isPlain =
            found.reading.method == .get && !alwaysNeedsExchange && (tokens == nil || !request.usesAuthenticator)
            && found.reading.body == nil && !found.reading.hasArgumentsInBody
        let own = found.reading.headers
        let words = max(CachingWords(own), builder.headers.cachingWords)
        var directives: (String?, String?)?
        if words == .directives {
            let common = found.reading.joined.isForeign ? builder.headers.publicFields : builder.headers.fields
            let cacheControl = own["Cache-Control"] ?? common["Cache-Control"]
            directives = (cacheControl, cacheControl == nil ? own["Pragma"] ?? common["Pragma"] : nil)
        }
        var key: CacheKey?
        // In a shared cache, user and password of a URL are in no key, but a response may vary by them.
        let hasHiddenUser = terms.isShared && found.reading.joined.credentials != nil
        if isPlain && words < .conditions && !hasHiddenUser {
            let isPublicOnly = found.reading.isPublicOnly
            key =
                found.secrets.isEmpty
                ? HTTPCacheKey.publicKey(
                    found.url, isCanonical: found.reading.joined.isCanonical, cache.httpPrefix,
                    isPublicOnly: isPublicOnly, terms)
                : HTTPCacheKey(cache.httpPrefix, isPublicOnly: isPublicOnly, terms, found.secrets).key(found.url)
        }
        return HTTPCacheTarget(found, key, directives: directives)
    }
}

/// What the fields of a request require of the responses that may serve it.
enum CachingWords: Comparable, Sendable {
    case none
    /// Directives for caches (RFC 9111, 5.2.1).
    case directives
    /// Conditions, or that a part is enough (RFC 9110, 13 and 14).
    case conditions

    init(_ headers: Headers) {
        var words = CachingWords.none
        let hasConditions = headers.containsName { name in
            switch name.utf8.count {
            case 6 where equalNames(name, "Pragma"), 13 where equalNames(name, "Cache-Control"):
                words = .directives
                return false
            case 5: return equalNames(name, "Range")
            case 8: return equalNames(name, "If-Match") || equalNames(name, "If-Range")
            case 13: return equalNames(name, "If-None-Match")
            case 17: return equalNames(name, "If-Modified-Since")
            case 19: return equalNames(name, "If-Unmodified-Since")
            default: return false
            }
        }
        self = hasConditions ? .conditions : words
    }
}

/// A request as it is read for the cache: its URL and its secrets, and what was read to find them.
struct HTTPReading {
    var url: String
    var secrets: [HTTPCacheKey.Secret]
    var reading: RequestReading
}

extension RequestBuilder {
    /// The prefix of all keys of responses stored under RFC 9111.
    func httpPrefix(_ configuration: CacheConfiguration) -> HTTPCacheKey.Prefix {
        // No key of the other policy begins with these bytes.
        HTTPCacheKey.Prefix(any: prefix(0xFE, configuration), publicOnly: prefix(0xFD, configuration))
    }

    private func prefix(_ first: UInt8, _ configuration: CacheConfiguration) -> [UInt8] {
        var bytes = [first]
        trust.withUnsafeBytes { bytes.appendCounted($0) }
        bytes.appendCounted(clientCertificate ?? "")
        bytes.appendCounted(configuration.applicationVersion ?? "")
        bytes.append(configuration.applicationVersion == nil ? 0 : 1)
        return bytes
    }

    /// The target of a request and the secrets in it, without building the request. They are correct if no adapter and
    /// no authenticator changes the request. If this finds nothing, the lookup is repeated with the request as sent.
    func httpTarget<R: Request>(
        _ request: R, isShared: Bool, at servers: Servers
    ) throws(RequestError) -> HTTPReading {
        let (method, encoding, arguments) = (request.method, request.argumentEncoding, request.arguments)
        let joined = try servers.join(request.path, of: request)
        var url = joined.url
        if !arguments.isEmpty, encoding == .query || (encoding == .automatic && method.carriesArgumentsInQuery) {
            url = URLJoiner.append(query: arguments.formEncoded(), to: url)
        }
        let own = request.headers
        let common = joined.isForeign ? headers.publicFields : headers.fields
        let redirects = request.redirectPolicy
        let declared = sensitiveHeaders(with: redirects)
        let authorization = request.authorization
        let isAuthorized = authorization != nil && !own.contains("Authorization")
        func isSecret(_ name: String) -> Bool { SecretHeaders.distinguishes(name, declared: declared) }
        var sent: [Headers.Field] = []
        if common.containsName(isSecret) || own.containsName(isSecret) {
            for field in common where isSecret(field.name) {
                if own.contains(field.name) || (isAuthorized && equalNames(field.name, "Authorization")) { continue }
                sent.append(field)
            }
            for field in own where isSecret(field.name) { sent.append(field) }
        }
        let hasField = sent.contains { equalNames($0.name, "Authorization") }
        if !hasField, let value = authorization?.value ?? (isAuthorized ? nil : joined.credentials?.value) {
            sent.append(Headers.Field(name: "Authorization", value: value))
        }
        var secrets = sent.isEmpty ? [] : Self.secrets(sent, isShared: isShared)
        if isAuthorized, let digest = authorization?.digest {
            secrets.append(HTTPCacheKey.Secret(name: "", value: "\(digest.user)\0\(digest.password)"))
        }
        let reading = RequestReading(
            of: request, joined: joined, headers: own, isPublicOnly: isPublicOnly(request), redirectPolicy: redirects,
            method: method, arguments: arguments, encoding: encoding, authorization: authorization, body: request.body)
        return HTTPReading(url: url, secrets: secrets, reading: reading)
    }

    /// The fields that distinguish users. In a shared cache `Authorization` does not: RFC 9111, 3.5 has its own rule
    /// for it.
    static func secrets(_ fields: [Headers.Field], isShared: Bool) -> [HTTPCacheKey.Secret] {
        fields.compactMap { field in
            let name = lowercased(field.name)
            return isShared && name == "authorization" ? nil : HTTPCacheKey.Secret(name: name, value: field.value)
        }
    }
}

/// The validations in progress. Runs that need the same one wait for it, and then look into the cache again.
/// Thread-safe.
final class ValidationTable: Sendable {
    private typealias Waiters = [@Sendable (Bool) -> Void]
    private let waiters = Mutex<[VariantKey: Waiters]>([:])

    /// The role of the run that validates. When this object is released, the waiting runs continue.
    final class Lead: Sendable {
        private let table: ValidationTable
        private let key: VariantKey
        private let isOver = Atomic<Bool>(false)

        fileprivate init(_ table: ValidationTable, _ key: VariantKey) { (self.table, self.key) = (table, key) }

        deinit { end() }

        /// The result of the validation is stored, or the validation has failed.
        func end() {
            if isOver.exchange(true, ordering: .relaxed) { return }
            let waiters = table.waiters.withLock { $0.removeValue(forKey: key) }
            for waiter in waiters ?? [] { waiter(true) }
        }
    }

    /// Becomes the run that validates; `nil` if another run does so already.
    func lead(_ key: VariantKey) -> Lead? {
        let isFirst = waiters.withLock { waiters in
            if waiters[key] != nil { return false }
            waiters[key] = []
            return true
        }
        return isFirst ? Lead(self, key) : nil
    }

    func isUnderWay(_ key: VariantKey) -> Bool { waiters.withLock { $0[key] != nil } }

    /// The number of waiting runs.
    var waiting: Int { waiters.withLock { $0.values.reduce(0) { $0 + $1.count } } }

    /// Calls `done` once, when the validation in progress has ended, or immediately if there is none.
    func wait(_ key: VariantKey, _ done: @escaping @Sendable (Bool) -> Void) {
        let isOver = waiters.withLock { waiters in
            if waiters[key] == nil { return true }
            waiters[key]?.append(done)
            return false
        }
        if isOver { done(true) }
    }
}

/// The origin of a URL in the one spelling under which responses are stored: scheme and host in lower case, an
/// international name in punycode, no default port (RFC 9110, 4.2.3). References in responses are resolved to that
/// spelling, and must find what was stored under the URL of a configuration.
enum CanonicalOrigin {
    private enum Spelling {
        case canonical
        /// Only case or a default port are different.
        case close
        /// A parser has to look: a name in other letters, an address in brackets, a port with zeros.
        case unknown
    }

    /// The URL with its origin in that spelling. The rest is unchanged.
    static func apply(to url: String) -> String {
        var url = url
        let (spelling, length) = url.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let length = HostKey.prefixLength(bytes)
            return (Self.spelling(of: bytes[..<length]), length)
        }
        let origin: String?
        switch spelling {
        case .canonical: return url
        case .close: origin = HostKey(url: url)?.text
        case .unknown: origin = (try? URLParts(url)).flatMap { HostKey(url: $0.text)?.text }
        }
        guard let origin else { return url }
        return String(decoding: Array(origin.utf8) + url.utf8.dropFirst(length), as: UTF8.self)
    }

    private static func spelling(of origin: Slice<UnsafeRawBufferPointer>) -> Spelling {
        guard let colon = origin.firstIndex(of: 0x3A), colon + 3 < origin.endIndex else { return .canonical }
        var hasCapitals = false
        for byte in origin[..<colon] where byte != lowercased(byte) { hasCapitals = true }
        // The path of a socket has one spelling already. Only `https` has five letters.
        if colon > 5 { return hasCapitals ? .close : .canonical }
        let authority = origin[(colon + 3)...]
        let end = authority.firstIndex(of: 0x3A) ?? authority.endIndex
        if mayBeAddress(authority[..<end]) { return .unknown }
        for byte in authority[..<end] {
            switch byte {
            case 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x5F: break
            case 0x41...0x5A: hasCapitals = true
            default: return .unknown
            }
        }
        if end < authority.endIndex {
            let port = authority[(end + 1)...]
            if port.first == 0x30 || port.contains(where: { $0 < 0x30 || $0 > 0x39 }) { return .unknown }
            if port.isEmpty || (colon == 5 ? "443" : "80").utf8.elementsEqual(port) { return .close }
        }
        return hasCapitals ? .close : .canonical
    }

    /// Whether the host is an IPv4 address in another spelling than four decimal numbers, like `127.1` or `0x7f.0.0.1`:
    /// its last label begins with a digit.
    private static func mayBeAddress(_ host: Slice<UnsafeRawBufferPointer>) -> Bool {
        let last = host.lastIndex(of: 0x2E).map { host.index(after: $0) } ?? host.startIndex
        guard last < host.endIndex, (0x30...0x39).contains(host[last]) else { return host.last == 0x2E }
        var (labels, digits, value) = (1, 0, 0)
        for byte in host {
            if byte == 0x2E {
                if digits == 0 { return true }
                (labels, digits, value) = (labels + 1, 0, 0)
                continue
            }
            guard (0x30...0x39).contains(byte), digits == 0 || value > 0 else { return true }
            (digits, value) = (digits + 1, value * 10 + Int(byte) - 0x30)
            if value > 255 { return true }
        }
        return labels != 4 || digits == 0
    }
}

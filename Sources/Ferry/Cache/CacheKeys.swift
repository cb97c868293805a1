import FerryCache
import FoundationEssentials
import Glibc

extension RequestBuilder {
    /// The target and the key of a request: method, URL, arguments, body, named header fields, and credentials.
    func cacheTarget<R: Request>(_ request: R, at servers: Servers) throws(RequestError) -> CacheTarget {
        if let prebuilt = request.prebuiltRequest {
            let joined = try join(prebuilt.url)
            let (isPublicOnly, redirects) = (isPublicOnly(request), request.redirectPolicy)
            var key = CacheKeyMaterial(prebuilt.method, joined.url, trust: trust, isPublicOnly: isPublicOnly)
            let reading = RequestReading(
                prebuilt, of: request, joined: joined, isPublicOnly: isPublicOnly, redirectPolicy: redirects)
            var target = CacheTarget(url: joined.url, reading: reading)
            guard key.append(Arguments(), .automatic), key.append(prebuilt.body) else { return target }
            append(
                prebuilt.headers, request.cacheHeaders, secrets: sensitiveHeaders(with: redirects), authorization: nil,
                joined, common: Headers(), to: &key)
            target.seal(key)
            return target
        }
        let named = request.cacheArguments
        let (method, encoding, arguments) = (request.method, request.argumentEncoding, request.arguments)
        let joined = try servers.join(request.path, of: request)
        var url = joined.url
        if !arguments.isEmpty, encoding == .query || (encoding == .automatic && method.carriesArgumentsInQuery) {
            url = URLJoiner.append(query: arguments.formEncoded(), to: url)
        }
        var own = request.headers
        let (authorization, body, isPublicOnly) = (request.authorization, request.body, isPublicOnly(request))
        let redirects = request.redirectPolicy
        let reading = RequestReading(
            of: request, joined: joined, headers: own, isPublicOnly: isPublicOnly, redirectPolicy: redirects,
            method: method, arguments: arguments, encoding: encoding, authorization: authorization, body: body)
        var target = CacheTarget(url: url, reading: reading)
        var key = CacheKeyMaterial(method, joined.url, trust: trust, isPublicOnly: isPublicOnly)
        // Others are made of arguments that nobody has seen. If these have changed meanwhile, nobody knows to which of
        // two users the response would belong.
        guard named == arguments || request.cacheArguments == named, key.append(named, encoding), key.append(body)
        else { return target }
        let (common, cacheHeaders) = (joined.isForeign ? headers.publicFields : headers.fields, request.cacheHeaders)
        if !cacheHeaders.isEmpty, let value = accept(reading.acceptedContentTypes, own, common) {
            own.append("Accept", value)
        }
        append(
            own, cacheHeaders, secrets: sensitiveHeaders(with: redirects), authorization: authorization,
            joined, common: common, to: &key)
        target.seal(key)
        return target
    }

    private func append(
        _ own: Headers, _ named: [String], secrets: [String], authorization: Authorization?, _ joined: JoinedURL,
        common: Headers, to key: inout CacheKeyMaterial
    ) {
        for name in named {
            key.append(name.lowercased(), own[name] ?? common[name] ?? "")
        }
        key.beginCredentials()
        for field in own where SecretHeaders.distinguishes(field.name, declared: secrets) {
            key.append(
                field.name.lowercased(), field.value,
                isCredential: SecretHeaders.contains(field.name, declared: secrets))
        }
        for field in common where SecretHeaders.distinguishes(field.name, declared: secrets) {
            key.append(
                field.name.lowercased(), field.value,
                isCredential: SecretHeaders.contains(field.name, declared: secrets))
        }
        if let value = authorization?.value { key.append(credential: "authorization", value) }
        if let digest = authorization?.digest { key.append(credential: digest.user, digest.password) }
        if let value = joined.credentials?.value { key.append(credential: "url", value) }
        // Another process with the same directory may use another certificate.
        if let certificate = clientCertificate { key.append(credential: "certificate", certificate) }
    }

    /// The value of a header field as this request sends it, without additions by others; `nil` if it has none.
    func sentValue(of name: String, after reading: RequestReading) -> String? {
        if let value = ownValue(of: name, after: reading) { return value }
        if equalNames(name, "User-Agent") { return userAgent }
        guard equalNames(name, "Accept-Encoding") else { return nil }
        let encodings = reading.acceptedEncodings ?? acceptedEncodings
        return encodings.isEmpty ? nil : encodings.field
    }

    private func ownValue(of name: String, after reading: RequestReading) -> String? {
        if let own = reading.headers[name] { return own }
        if reading.isPrebuilt { return nil }
        if equalNames(name, "Authorization"), let value = reading.authorization?.value { return value }
        let common = reading.joined.isForeign ? headers.publicFields : headers.fields
        if equalNames(name, "Accept"), let value = accept(reading.acceptedContentTypes, reading.headers, common) {
            return value
        }
        return common[name]
    }
}

extension TLSConfiguration {
    /// How servers were trusted is part of the key, so that a response obtained with weaker settings does not serve a
    /// run with stricter ones. Empty for the defaults.
    var trust: [UInt8] {
        let defaults = TLSConfiguration()
        if verification == defaults.verification, authorityFile == defaults.authorityFile, pinnedKeys.isEmpty,
            minimumVersion == defaults.minimumVersion
        {
            return []
        }
        var bytes: [UInt8] = []
        bytes.appendCounted("\(verification) \(minimumVersion)")
        bytes.appendCounted(authorityFile.map(Self.identity) ?? "")
        for key in Set(pinnedKeys).sorted() { bytes.appendCounted(key) }
        return bytes
    }
}

extension NetworkConfiguration {
    /// Where connections go instead of to the addresses of their names: with another socket or override, a URL is that
    /// of another server. Empty for the defaults.
    var route: [UInt8] {
        if unixSocket == nil && hostOverrides.isEmpty { return [] }
        var bytes: [UInt8] = []
        bytes.appendCounted("route")
        bytes.appendCounted(unixSocket ?? "")
        for (host, addresses) in hostOverrides.sorted(by: { $0.key < $1.key }) {
            bytes.appendCounted(host)
            bytes.appendCounted(addresses.joined(separator: ","))
        }
        return bytes
    }
}

extension TLSConfiguration {
    /// The path, or the digest of the content if the path is that of an open descriptor, which says nothing about it.
    private static func identity(_ path: String) -> String {
        guard path.hasPrefix("/proc/self/fd/"), let bytes = FileManager.default.contents(atPath: path) else {
            return path
        }
        return SHA256.hexadecimal(of: Array(bytes))
    }
}

extension ClientCertificate {
    /// The digest of the file, or its path if it cannot be read.
    var identity: String {
        // Reading a FIFO would wait for its writer.
        var status = stat()
        guard stat(certificateFile, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let bytes = FileManager.default.contents(atPath: certificateFile)
        else { return certificateFile }
        return SHA256.hexadecimal(of: Array(bytes))
    }
}

extension CacheTarget {
    fileprivate mutating func seal(_ key: CacheKeyMaterial) {
        self.key = CacheKey(key.bytes)
        hasCredentials = key.hasCredentials
    }
}

/// The bytes of a key: each part has a length prefix, so that no two requests have the same key.
struct CacheKeyMaterial {
    private(set) var bytes: [UInt8] = []
    private(set) var hasCredentials = false

    init(_ method: HTTPMethod, _ url: String, trust: [UInt8], isPublicOnly: Bool) {
        bytes.reserveCapacity(256)
        // A response from another address must not serve a request that may go to the public internet only.
        bytes.append((trust.isEmpty ? 0 : 1) | (isPublicOnly ? 2 : 0))
        if !trust.isEmpty { trust.withUnsafeBytes { bytes.appendCounted($0) } }
        bytes.appendCounted(method.rawValue)
        bytes.appendCounted(url)
    }

    /// As they are sent: JSON distinguishes a number from a string, a form does not. Returns `false` if they cannot be
    /// sent.
    mutating func append(_ arguments: Arguments, _ encoding: ArgumentEncoding) -> Bool {
        bytes.append(encoding.number)
        bytes.append(arguments.isEmpty ? 0 : 1)
        if arguments.isEmpty { return true }
        guard let encoded = encoding == .json ? arguments.jsonEncoded() : arguments.formEncoded() else { return false }
        encoded.withUnsafeBytes { bytes.appendCounted($0) }
        return true
    }

    /// Returns `false` if the body cannot be read in advance.
    mutating func append(_ body: RequestBody?) -> Bool {
        guard let body else {
            bytes.append(0)
            return true
        }
        let digest: CacheDigest
        switch body.content {
        case .data(let data): digest = data.withUnsafeBytes { CacheDigest(of: $0) }
        case .bytes(let bytes): digest = CacheDigest(of: bytes)
        case .string(let text): digest = CacheDigest(of: text)
        case .json(let value, var encoder):
            // Members in an order that is the same every time, also in another process.
            encoder.outputFormatting.insert(.sortedKeys)
            guard let data = try? encoder.encode(value) else { return false }
            digest = data.withUnsafeBytes { CacheDigest(of: $0) }
        case .pulled, .multipart: return false
        }
        bytes.append(1)
        bytes.appendCounted(body.contentType ?? "")
        // Keys of bodies without a coding stay what they were.
        if let coding = body.coding { bytes.appendCounted(coding.name) }
        digest.withBytes { bytes.append(contentsOf: $0) }
        return true
    }

    mutating func append(_ name: String, _ value: String) {
        bytes.appendCounted(name)
        bytes.appendCounted(value)
    }

    mutating func beginCredentials() { bytes.append(0xFF) }

    mutating func append(credential name: String, _ value: String) { append(name, value, isCredential: true) }

    mutating func append(_ name: String, _ value: String, isCredential: Bool) {
        if isCredential { hasCredentials = true }
        append(name, value)
    }
}

extension ArgumentEncoding {
    fileprivate var number: UInt8 {
        switch self {
        case .automatic: 0
        case .query: 1
        case .form: 2
        case .json: 3
        }
    }
}

/// What the cache needs to know about a run, independent of the request's type.
struct CachePlan: Sendable {
    let key: CacheKey
    let terms: CacheTerms
    let writing: CachePolicy.Writing
    /// The URL of the run.
    let url: String
    /// The key or the sensitive data identify the owner of the response.
    let isOwned: Bool

    var hasSensitiveData: Bool { terms.sensitiveData != .none }
}

/// The URL of a request, and what distinguishes its response from others.
struct CacheTarget {
    let url: String
    /// What the key is made of, for the transfer and for the fields in `Vary`.
    let reading: RequestReading
    /// `nil` if the body cannot be read without reading a file or a stream.
    var key: CacheKey?
    var hasCredentials = false
}

extension CachePlan {
    /// `nil` if the request is not cached.
    init?(_ policy: CachePolicy, _ target: CacheTarget, in cache: ResponseCache?) {
        guard let cache, let terms = policy.terms, let key = target.key else { return nil }
        let wanted = CacheTerms(
            time: terms.lifetime.microseconds, version: Int64(terms.version), sensitiveData: terms.sensitiveData,
            applicationVersion: cache.applicationVersion)
        self.init(
            key: key, terms: wanted, writing: terms.writing, url: target.url,
            isOwned: target.hasCredentials || terms.sensitiveData != .none)
    }
}

extension Response {
    /// What the cache did for this response, in the terms of RFC 9211; `nil` if it was not used.
    public var cacheStatus: CacheStatus? { origin?.cache?.status }

    /// The time since the response was stored, if it came from the cache; `nil` otherwise. With RFC 9111 it is the age
    /// of the response (4.2.3), which includes caches between here and the server.
    public var age: Duration? { origin?.cache?.age }

    /// Whether the response came from the cache and is stale, which the mode permitted.
    public var isStale: Bool { origin?.cache?.isStale ?? false }

    /// Why the response did not come from the cache although there was a lookup; `nil` otherwise.
    public var cacheMiss: CacheMiss? { origin?.cache?.miss }
}

extension [UInt8] {
    /// A text with a length prefix, so that two texts cannot be confused with two others.
    mutating func appendCounted(_ text: String) {
        var text = text
        text.withUTF8 { appendCounted(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(number: Int64) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    mutating func appendCounted(_ bytes: UnsafeRawBufferPointer) {
        Swift.withUnsafeBytes(of: UInt32(clamping: bytes.count).littleEndian) { append(contentsOf: $0) }
        append(contentsOf: bytes)
    }
}

struct AttributeReader {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: Slice<UnsafeRawBufferPointer>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func bytes(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func number() -> Int64? {
        guard let bytes = bytes(8) else { return nil }
        return Int64(bitPattern: bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    mutating func text() -> String? {
        guard let length = bytes(4) else { return nil }
        let count = length.reversed().reduce(0) { $0 << 8 | Int($1) }
        return bytes(count).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// What a validation or a refresh is about: one of the stored responses of a URL.
struct VariantKey: Hashable {
    let key: CacheKey
    /// Identifies it among those that `Vary` tells apart.
    var variance = CacheDigest.none
}

/// The members of a request that were read for its key in the cache. The transfer is built from the same values: the
/// application may switch to another user at any moment, and a response must not be stored under the key of another.
///
/// It is on the heap: copies of so many members would take a fifth of the time of a hit in memory.
final class RequestReading: Sendable {
    /// The URL without the arguments.
    let joined: JoinedURL
    let headers: Headers
    let method: HTTPMethod
    let arguments: Arguments
    let encoding: ArgumentEncoding
    let authorization: Authorization?
    let body: RequestBody?
    let acceptedContentTypes: [String]?
    let acceptedEncodings: [ContentEncoding]?
    let idempotencyKey: IdempotencyKey?
    let redirectPolicy: RedirectPolicy?
    /// Whether it may go to addresses of the public internet only (``Request/addressPolicy``).
    let isPublicOnly: Bool
    /// Whether these are the members of ``Request/prebuiltRequest``.
    let isPrebuilt: Bool

    /// Whether the arguments become the body.
    var hasArgumentsInBody: Bool {
        switch encoding {
        case .query: false
        case .automatic: !arguments.isEmpty && !method.carriesArgumentsInQuery
        default: !arguments.isEmpty
        }
    }

    init<R: Request>(
        of request: R, joined: JoinedURL, headers: Headers, isPublicOnly: Bool, redirectPolicy: RedirectPolicy?,
        method: HTTPMethod, arguments: Arguments, encoding: ArgumentEncoding, authorization: Authorization?,
        body: RequestBody?
    ) {
        (acceptedContentTypes, acceptedEncodings) = (request.acceptedContentTypes, request.acceptedEncodings)
        idempotencyKey = request.idempotencyKey
        (self.joined, self.headers, self.method, isPrebuilt) = (joined, headers, method, false)
        (self.isPublicOnly, self.redirectPolicy) = (isPublicOnly, redirectPolicy)
        (self.arguments, self.encoding) = (arguments, encoding)
        (self.authorization, self.body) = (authorization, body)
    }

    /// The same for a prebuilt request, which needs fewer members.
    init<R: Request>(
        _ prebuilt: OutgoingRequest, of request: R, joined: JoinedURL, isPublicOnly: Bool,
        redirectPolicy: RedirectPolicy?
    ) {
        (acceptedContentTypes, acceptedEncodings, idempotencyKey) = (nil, request.acceptedEncodings, nil)
        (self.joined, headers, method, isPrebuilt) = (joined, prebuilt.headers, prebuilt.method, true)
        (self.isPublicOnly, self.redirectPolicy) = (isPublicOnly, redirectPolicy)
        (arguments, encoding) = (Arguments(), .automatic)
        (authorization, body) = (nil, prebuilt.body)
    }
}

import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// A complete HTTP request before it is sent. Adapters change it, interceptors look at it, and
/// ``Request/prebuiltRequest`` supplies one.
///
/// If the request is invalid (an invalid URL, a line break in a header field), the run fails before anything is sent,
/// whatever the source of the value.
public struct OutgoingRequest: Sendable {
    /// The method.
    public var method: HTTPMethod

    /// The absolute URL. A user and password in it become an `Authorization` field, unless there is one.
    public var url: String

    /// The header fields. The configuration's `User-Agent` and `Accept-Encoding` are added unless they are set here.
    public var headers: Headers

    /// The body, including the arguments that go there. Adapters see its content type in ``headers``. If they set
    /// another body that has a content type, that type replaces the field, unless they have changed the field or the
    /// request's own headers set it. The same is true for the `Content-Encoding` of a compressed body.
    public var body: RequestBody? {
        didSet {
            version = Self.nextVersion()
            if let bodyCoding, headers["Content-Encoding"] == bodyCoding {
                headers["Content-Encoding"] = body?.coding?.name
                self.bodyCoding = body?.coding?.name
            }
            guard let bodyType, headers["Content-Type"] == bodyType, let type = body?.contentType else { return }
            headers["Content-Type"] = type
            self.bodyType = type
        }
    }

    /// Identifies the body: no other that an application has set or created a request with has the same number. 0 for
    /// requests of Ferry's own.
    private(set) var version: UInt64 = 0

    private static let versions = Atomic<UInt64>(0)
    private static func nextVersion() -> UInt64 { versions.wrappingAdd(1, ordering: .relaxed).newValue }

    /// The `Content-Type` field that came from the body.
    private var bodyType: String?

    /// The `Content-Encoding` field that came from the body. Another body has another coding, or none.
    private var bodyCoding: String?

    /// Creates a request. The default is a GET without header fields and body.
    public init(method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.init(own: method, url: url, headers: headers, body: body)
        version = Self.nextVersion()
    }

    /// A request that no code of the application has changed.
    init(own method: HTTPMethod, url: String, headers: Headers, body: RequestBody?) {
        (self.method, self.url, self.headers) = (method, url, headers)
        self.body = body
    }

    /// Whether its body is another than that of the request that it is a copy of.
    func hasOtherBody(than original: OutgoingRequest) -> Bool {
        version != original.version && (body != nil || original.body != nil)
    }

    /// Notes that the `Content-Type` field, if there is one, came from the body.
    mutating func noteBodyType() { if body != nil { bodyType = headers["Content-Type"] } }

    /// Notes the coding of the body, which is compressed already or as it is sent.
    fileprivate mutating func noteBodyCoding(_ coding: RequestBody.Coding?) { bodyCoding = coding?.name }
}

/// A request in the form that the transport needs. It is moved and never copied, because it is large.
struct BuiltRequest: ~Copyable, Sendable {
    var transfer: TransferRequest
    /// Provides the body if it is read as it is sent. The source of an attempt that is not made closes itself when it
    /// is released.
    var source: (any BodySource)?
    /// `false` if the request is only inspected: then no file is opened, and no stream is used.
    var opensBody = true
    /// Whether a body that is read from files is not opened either.
    var defersFiles = false
    /// The body that is read as it is sent, with the arguments that belong to it.
    var pulled: RequestBody?
    /// The files that the run has open, if its body is read as it is sent.
    var files: BodyFiles?
    /// How its body is compressed, or will be as it is read.
    var coding: RequestBody.Coding?
    /// The `Content-Length` field of a body that is not open yet, to be compared when it is.
    var announcedLength: String?
    /// Whether the request itself says that it may be sent twice, whatever its header fields say.
    var isIdempotent = true
    /// Whether the request's own header fields set the content type.
    var ownsContentType = false
    /// Whether the request says which types it accepts. The `Accept` field of the configuration is for any request.
    var ownsAccept = false
    /// Whether its `Idempotency-Key` was generated for this run.
    var hasGeneratedKey = false
    /// What the request itself says about its run; `nil` if it says nothing.
    var settings: OwnSettings?
    /// The parent context of its spans; `nil` if there is none or if it must not be sent.
    var trace: TraceContext?
    /// Counts the bytes of the body as they are sent, if upload progress may be requested.
    var meter: UploadMeter?
    /// Receives informational responses; `nil` if nobody does.
    private(set) var informed: RunWatch?

    /// Makes `watch` receive informational responses, if there is one that reads them.
    mutating func inform(_ watch: RunWatch?) {
        guard let watch, !watch.isOnlyTraced else { return }
        informed = watch
        transfer.reportsInformational = true
    }

    // MARK: Content-Length

    /// The length on the wire is that of the body. The same length set by the caller is left out; another one is
    /// refused, once the body is open.
    func checkLength(_ value: String) throws(RequestError) {
        if isDeferred { return }
        guard let length = transfer.body.length, UInt64(value) == length else {
            throw RequestError(
                preparing: .invalidRequest(.framing), message: "Content-Length does not match the length of the body",
                url: transfer.url)
        }
    }

    /// The same for a body that was not open when the header fields were packed.
    func checkLength(announcedBy snapshot: RequestSnapshot) throws(RequestError) {
        guard let value = snapshot.announcedLength, case .pull = transfer.body else { return }
        try checkLength(value)
    }

    mutating func noteLength(in headers: Headers) {
        if isDeferred { announcedLength = headers["Content-Length"] }
    }

    private var isDeferred: Bool {
        guard source == nil, case .pull = transfer.body else { return false }
        return true
    }
}

/// A request as read at the start of its run. All attempts of the run are made from it. Its content is read only once,
/// because a computed member may return a different value each time, and the `Idempotency-Key` in particular must be
/// the same in every attempt. Only adapters and the authenticator add to it.
struct RequestSnapshot: Sendable {
    /// The transfer if nothing changes it. A body that is read as it is sent is not open yet.
    let transfer: TransferRequest
    private let pulled: RequestBody?
    let files: BodyFiles?
    private let coding: RequestBody.Coding?
    let isIdempotent: Bool
    private let ownsContentType: Bool
    /// Whether the run has generated its `Idempotency-Key`.
    let hasGeneratedKey: Bool
    /// What the request itself says about its run; `nil` if it says nothing.
    let settings: OwnSettings?
    private let trace: TraceContext?
    let announcedLength: String?

    init(_ built: borrowing BuiltRequest) {
        transfer = built.transfer
        pulled = built.pulled
        files = built.files
        coding = built.coding
        isIdempotent = built.isIdempotent
        ownsContentType = built.ownsContentType
        hasGeneratedKey = built.hasGeneratedKey
        settings = built.settings
        trace = built.trace
        announcedLength = built.announcedLength
    }

    /// The request in the form that adapters change.
    var outgoing: OutgoingRequest {
        let body: RequestBody? =
            switch transfer.body {
            case .none: nil
            case .bytes(let bytes): .bytes(bytes)
            case .data(let data): .data(data)
            case .pull: pulled
            }
        var outgoing = OutgoingRequest(
            own: HTTPMethod(transfer.method), url: transfer.url, headers: Headers(transfer.headers), body: body)
        // A content type that the request sets itself applies to any body.
        if body != nil, !ownsContentType { outgoing.noteBodyType() }
        outgoing.noteBodyCoding(coding)
        return outgoing
    }

    /// The request as it is sent if nothing changes it, with its body open.
    func open() throws(RequestError) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        built.trace = trace
        built.files = files
        built.settings = settings
        guard let pulled else { return built }
        switch pulled.content {
        case .pulled(let body): try built.pull(body, of: pulled)
        case .multipart(let form): try built.pull(form, of: pulled)
        case .data, .bytes, .string, .json: break
        }
        try built.checkLength(announcedBy: self)
        return built
    }

    /// Whether the body is read as it is sent.
    var isPulled: Bool { pulled != nil }

    /// The files that the body is read from.
    var bodyFiles: [FileBody] { pulled?.files ?? [] }

    /// The request with another method, URL, header fields and body, but otherwise unchanged.
    func with(_ outgoing: OutgoingRequest, to url: String, _ files: BodyFiles?) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        built.trace = trace
        built.files = files
        built.transfer.url = url
        built.transfer.method = outgoing.method.rawValue
        built.transfer.body = .none
        built.transfer.sendsTrailers = false
        built.transfer.credentials = nil
        // What the request says about sending it twice applies to its own method only.
        built.transfer.isIdempotent =
            outgoing.method.rawValue == transfer.method ? isIdempotent : outgoing.method.isIdempotent
        return built
    }
}

/// The credentials of a request. An `Authorization` header field of the request overrides them.
public struct Authorization: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// The value of the header field, sent with the first request.
        case value(String)
        /// Credentials for the server's challenge.
        case digest(Credential)
        /// A user name with a colon, which Basic would end at the colon: it is never sent.
        case invalidBasic(Credential)
    }

    let kind: Kind

    /// User and password as UTF-8 (RFC 7617), sent without waiting for a challenge. The user name must not contain a
    /// colon, because it ends at the first one: a request that would send such a name, also one from a URL, fails with
    /// `invalidRequest`, and nothing is sent. The password may contain colons.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        if user.utf8.contains(UInt8(ascii: ":")) {
            return Authorization(kind: .invalidBasic(Credential(user: user, password: password)))
        }
        return Authorization(kind: .value("Basic " + Data("\(user):\(password)".utf8).base64EncodedString()))
    }

    /// A token (RFC 6750), sent without waiting for a challenge.
    public static func bearer(_ token: String) -> Authorization {
        Authorization(kind: .value("Bearer " + token))
    }

    /// User and password (RFC 7616), of which only a digest is sent, in response to the server's challenge. Each run
    /// takes one more round trip. A body that can be read only once cannot be sent again after the challenge.
    public static func digest(_ user: String, _ password: String) -> Authorization {
        Authorization(kind: .digest(Credential(user: user, password: password)))
    }

    /// The value of the header field; `nil` if nothing is sent before a challenge. That of a user name with a colon is
    /// no valid one, so that no cache has a response for it.
    var value: String? {
        switch kind {
        case .value(let value): value
        case .digest: nil
        case .invalidBasic(let credential):
            "Basic "
                + [credential.user, credential.password].map { Data($0.utf8).base64EncodedString() }
                .joined(separator: ":")
        }
    }

    /// The value to send, if it can be sent.
    func sentValue(url: String) throws(RequestError) -> String? {
        if case .invalidBasic = kind { throw .colonInUser(url: url) }
        return value
    }

    /// The credentials for challenges; `nil` if there are none.
    var digest: Credential? { if case .digest(let credential) = kind { credential } else { nil } }
}

extension Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme, without the secret.
    public var description: String { "\(value?.prefix { $0 != " " } ?? "Digest") ***" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Empty, so that `dump` shows no secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The value of the `Idempotency-Key` header field. A server uses the key to recognise a request that it has already
/// processed, so that it acts on it only once.
///
/// A request with a key may be retried whatever its method is: see ``RetryPolicy``. Every attempt of a run sends the
/// same key. A field of this name in ``Request/headers`` overrides the key.
public struct IdempotencyKey: Sendable, Hashable, ExpressibleByStringLiteral {
    private let text: String?

    /// A new UUID for each run. Runs that share a transfer (``Request/coalesces``) use the key of the first.
    public static let automatic = IdempotencyKey(text: nil)

    /// A key that the application chooses, the same in every run. Use it for a request that is repeated after a crash
    /// or by another process.
    public static func value(_ key: String) -> IdempotencyKey { IdempotencyKey(text: key) }

    /// Creates a key that the application chooses.
    public init(stringLiteral key: String) { text = key }

    private init(text: String?) { self.text = text }

    /// The key of one run.
    func make() -> String { text ?? UUID().uuidString }
}

extension HeaderBlock {
    /// Refuses values that would break out of their line (RFC 9110, 5.5), and framing fields, which the caller may not
    /// set.
    mutating func appendChecked(_ name: String, _ value: String, url: String) throws(RequestError) {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else {
            throw RequestError(
                preparing: .invalidRequest(.headerName), message: "the name of a header field is not a token", url: url)
        }
        for byte in value.utf8 where isControl(byte) && byte != 0x09 {
            throw RequestError(
                preparing: .invalidRequest(.headerValue),
                message: "the value of the header field \(name) contains a control character", url: url)
        }
        if equalNames(name, "Transfer-Encoding") || equalNames(name, "Content-Length") {
            throw RequestError(
                preparing: .invalidRequest(.framing), message: "the header field \(name) cannot be set by the caller",
                url: url)
        }
        append(name, value)
    }
}

extension RequestError {
    /// The error for a HEAD request with a body.
    static func bodyOfHead(url: String) -> RequestError {
        RequestError(
            preparing: .invalidRequest(.framing), message: "a HEAD request cannot have a body", url: url)
    }

    /// The error for a credential that would not be sent as intended.
    static func unusableCredential(url: String) -> RequestError {
        RequestError(preparing: .invalidRequest, message: "a credential contains a control character", url: url)
    }

    /// The error for a user name that Basic would send as another one (RFC 7617, 2).
    static func colonInUser(url: String) -> RequestError {
        RequestError(
            preparing: .invalidRequest, message: "the user name for Basic contains a colon (RFC 7617)", url: url)
    }
}

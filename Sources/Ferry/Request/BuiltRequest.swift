import FerryTransport
import FoundationEssentials

/// One HTTP request as it is about to leave. Adapters change it, interceptors look at it, and
/// ``Request/prebuiltRequest`` gives it whole.
///
/// What cannot be sent (a URL that is none, a line break in a header) fails the run before anything is sent, whoever
/// put it there.
public struct OutgoingRequest: Sendable {
    /// The method.
    public var method: HTTPMethod

    /// The absolute URL. User and password in it become an `Authorization` header unless there is one.
    public var url: String

    /// The header fields. `User-Agent` and `Accept-Encoding` of the configuration are added when they are not here.
    public var headers: Headers

    /// The body; arguments that go there are in it already. To adapters its content type stands among the ``headers``;
    /// where they set another body that names a type, that takes its place, unless they have changed the field, or the
    /// request's own headers have one. The same holds for the `Content-Encoding` of a body that is compressed.
    public var body: RequestBody? {
        didSet {
            changes &+= 1
            if let bodyCoding, headers["Content-Encoding"] == bodyCoding {
                headers["Content-Encoding"] = body?.coding?.name
                self.bodyCoding = body?.coding?.name
            }
            guard let bodyType, headers["Content-Type"] == bodyType, let type = body?.contentType else { return }
            headers["Content-Type"] = type
            self.bodyType = type
        }
    }

    /// How often the body was set.
    private(set) var changes: UInt8 = 0

    /// The `Content-Type` among the headers that came with the body.
    private var bodyType: String?

    /// Likewise the `Content-Encoding`: another body is another coding, or none.
    private var bodyCoding: String?

    /// A request of its parts; GET, without fields and body, unless they are named.
    public init(method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Its body has brought the `Content-Type` that stands among its headers, if there is one.
    mutating func noteBodyType() { if body != nil { bodyType = headers["Content-Type"] } }

    /// Its body is compressed to this already, or is when it is sent.
    fileprivate mutating func noteBodyCoding(_ coding: RequestBody.Coding?) { bodyCoding = coding?.name }
}

/// A request made concrete: ready for the transport. It is handed on, never copied: it is large.
struct BuiltRequest: ~Copyable, Sendable {
    var transfer: TransferRequest
    /// What gives out its body, where that is pulled. One of an attempt that is not made closes itself when it goes.
    var source: (any BodySource)?
    /// False when it is only to be looked at: then no file is opened, and no stream is taken.
    var opensBody = true
    /// The body that is pulled, with the arguments that go into it.
    var pulled: RequestBody?
    /// How its body is compressed, or will be as it is read.
    var coding: RequestBody.Coding?
    /// What the request says of sending it twice, whatever its headers say.
    var isIdempotent = true
    /// Its own headers name the type of its body.
    var ownsContentType = false
    /// The context that its spans are children of; `nil` where there is none, or it is not to be sent.
    var trace: TraceParent?
    /// Counts the body as it is sent, where somebody may ask.
    var meter: UploadMeter?
}

/// A request as it was read when its run began: what every attempt of the run is made of. Its members are not read
/// again, as one that computes them may say something else each time; an `Idempotency-Key` above all must be the same
/// in every attempt. Only adapters and the authenticator add to it.
struct RequestSnapshot: Sendable {
    /// As it is sent where nobody changes it. A body that is pulled is not open.
    let transfer: TransferRequest
    private let pulled: RequestBody?
    private let coding: RequestBody.Coding?
    fileprivate let isIdempotent: Bool
    private let ownsContentType: Bool
    private let trace: TraceParent?

    init(_ built: borrowing BuiltRequest) {
        transfer = built.transfer
        pulled = built.pulled
        coding = built.coding
        isIdempotent = built.isIdempotent
        ownsContentType = built.ownsContentType
        trace = built.trace
    }

    /// In the form that adapters change.
    var outgoing: OutgoingRequest {
        let body: RequestBody? =
            switch transfer.body {
            case .none: nil
            case .bytes(let bytes): .bytes(bytes)
            case .data(let data): .data(data)
            case .pull: pulled
            }
        var outgoing = OutgoingRequest(
            method: HTTPMethod(transfer.method), url: transfer.url, headers: Headers(transfer.headers), body: body)
        // A type among the headers of its own was meant for whatever body it has.
        if body != nil, !ownsContentType { outgoing.noteBodyType() }
        outgoing.noteBodyCoding(coding)
        return outgoing
    }

    /// As it is sent where nobody changes it, with its body open.
    func open() throws(RequestError) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        built.trace = trace
        guard let pulled else { return built }
        switch pulled.content {
        case .pulled(let body): try built.pull(body, of: pulled)
        case .multipart(let form): try built.pull(form, of: pulled)
        case .data, .bytes, .string, .json: break
        }
        return built
    }

    /// Whether its body is read as it is sent.
    var isPulled: Bool { pulled != nil }

    /// What it is with another method, URL, header and body: all else that the request says.
    func with(_ outgoing: OutgoingRequest, to url: String) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        built.trace = trace
        built.transfer.url = url
        built.transfer.method = outgoing.method.rawValue
        built.transfer.body = .none
        built.transfer.credentials = nil
        // What the request says of sending it twice, it says of the method it describes.
        built.transfer.isIdempotent =
            outgoing.method.rawValue == transfer.method ? isIdempotent : outgoing.method.isIdempotent
        return built
    }
}

/// Credentials of a request. An `Authorization` header of the request wins over them.
public struct Authorization: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// The value of the header field, sent at once.
        case value(String)
        /// Answers the server's challenge.
        case digest(Credential)
    }

    let kind: Kind

    /// User and password (RFC 7617), as UTF-8, sent without waiting for a challenge.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        Authorization(kind: .value("Basic " + Data("\(user):\(password)".utf8).base64EncodedString()))
    }

    /// A token (RFC 6750), sent without waiting for a challenge.
    public static func bearer(_ token: String) -> Authorization {
        Authorization(kind: .value("Bearer " + token))
    }

    /// User and password (RFC 7616), of which only a digest is sent, and that when the server asks for it: each run
    /// takes one more round. A body that can be read once only does not outlive that round.
    public static func digest(_ user: String, _ password: String) -> Authorization {
        Authorization(kind: .digest(Credential(user: user, password: password)))
    }

    /// The header field's value; `nil` when there is none to be sent at once.
    var value: String? { if case .value(let value) = kind { value } else { nil } }

    /// What challenges are answered with; `nil` when there is nothing.
    var digest: Credential? { if case .digest(let credential) = kind { credential } else { nil } }
}

extension Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme; never the secret.
    public var description: String { "\(value?.prefix { $0 != " " } ?? "Digest") ***" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Nothing, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The value of the header field `Idempotency-Key`, by which a server recognises a request that it has processed
/// before: it acts on the key once, however often the request comes.
///
/// A request with a key may be retried whatever its method is: see ``RetryPolicy``. Every attempt of a run sends the
/// same key. A field of this name among ``Request/headers`` wins over the key.
public struct IdempotencyKey: Sendable, Hashable, ExpressibleByStringLiteral {
    private let text: String?

    /// A new UUID for each run. Runs that share a transfer (``Request/coalesces``) share that of the first.
    public static let automatic = IdempotencyKey(text: nil)

    /// A key of the application's, the same in every run: for a request that is repeated after a crash, or by another
    /// process.
    public static func value(_ key: String) -> IdempotencyKey { IdempotencyKey(text: key) }

    /// A key of the application's.
    public init(stringLiteral key: String) { text = key }

    private init(text: String?) { self.text = text }

    /// What one run sends.
    func make() -> String { text ?? UUID().uuidString }
}

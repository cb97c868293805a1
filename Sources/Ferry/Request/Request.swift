public import FerryJSON
public import FoundationEssentials

/// The description of one HTTP exchange: immutable, and started as often as one likes, at once or in turn.
///
/// What is sent (path, headers, arguments, body) is read once for each run, when that begins, in the caller's thread or
/// task: every attempt of the run says the same.
///
/// Say only what differs; everything but ``path`` has a default. Requests are structs or final classes, and a
/// refinement with defaults of its own is how an application shares settings:
///
///     struct UserInfo: Request {
///         typealias Value = User          // Decodable
///         let id: Int
///         var path: String { "/users/\(id)" }
///     }
///     let user = try await agent.send(UserInfo(id: 7)).value
public protocol Request<Value>: Runnable {
    /// What the response is made into: `Response` when none is named, `Data`, `[UInt8]`, `String`, `Void`, any
    /// `Decodable`, `JSON`, any `JSONConvertible` (which wins over `Decodable`), or a type of one's own with
    /// ``value(from:)``.
    associatedtype Value: Sendable = Response

    /// A path below the base URL, or an absolute URL, which is used as it is.
    ///
    /// `..` cannot climb above the base. What a path cannot hold is percent-encoded as UTF-8; what is encoded already
    /// stays. Control characters, and white space in an absolute URL, are `invalidURL`.
    var path: String { get }

    /// Replaces the configuration's base. The default is `nil`, the configuration's.
    var baseURL: String? { get }

    /// Replaces the configuration's CDN. The default is `nil`, the configuration's.
    var cdnURL: String? { get }

    /// Whether the path is joined to the CDN and not to the base; without one that is `invalidURL`. The default is
    /// `false`.
    var usesCDN: Bool { get }

    /// The default is `.get`. Any token may be one but `CONNECT`, which is `invalidRequest(method)`.
    var method: HTTPMethod { get }

    /// Header fields; they win over the configuration's of the same name and over ``authorization``. The default is
    /// none.
    var headers: Headers { get }

    /// Arguments; where they go is ``argumentEncoding``'s to say. The default is none.
    var arguments: Arguments { get }

    /// Where the arguments go. The default is `.automatic`.
    var argumentEncoding: ArgumentEncoding { get }

    /// The body, allowed with any method but HEAD, where it is `invalidRequest(framing)`; arguments that would go there
    /// are left out. The default is `nil`; POST, PUT and PATCH then announce an empty one.
    var body: RequestBody? { get }

    /// Credentials of this request. The default is `nil`.
    var authorization: Authorization? { get }

    /// The content codings asked for. The default is `nil`, the configuration's; an empty array asks for none, and an
    /// `Accept-Encoding` header wins.
    var acceptedEncodings: [ContentEncoding]? { get }

    /// Replaces the configuration's timeouts. The default is `nil`, the configuration's (60 seconds without a byte).
    var timeouts: Timeouts? { get }

    /// A bound over everything from the start of the run on, its wait in the queue included. The default is `nil`, the
    /// configuration's.
    var deadline: Duration? { get }

    /// Its place among those that wait. The default is `.normal`.
    var priority: RequestPriority { get }

    /// A complete request of one's own in the place of what the members describe: base, filters, arguments, headers and
    /// credentials are passed by, the configuration's too; priority, timeouts, validation, hooks and policies hold as
    /// for any other. Adapters see it; the authenticator does where ``usesAuthenticator`` says so, and then its token
    /// takes the place of an `Authorization` that stands here. The default is `nil`.
    var prebuiltRequest: OutgoingRequest? { get }

    /// Which status codes are a success. The default is `nil`, the configuration's (200 to 299).
    var statusValidation: StatusValidation? { get }

    /// What the body is taken for. The default is `.json`.
    var responseFormat: ResponseFormat { get }

    /// The content types that are accepted, like `application/json`, `text/*` or `*/*`; an answer that has a body of
    /// another one, or of none, fails with `invalidContentType`. Streamed or downloaded, one that does not announce its
    /// length counts as one that has a body. They are sent as the `Accept` field, unless the request or the
    /// configuration has one. The default is `nil`, any.
    var acceptedContentTypes: [String]? { get }

    /// What the body must look like, checked before a value is made of it: what does not fit is `schemaMismatch`, what
    /// is no JSON, or empty, `invalidJSON`. Keep it in a `static let`, it is compiled once. The default is `nil`.
    var jsonSchema: JSONSchema? { get }

    /// How a `Decodable` value is decoded: the strategies for keys, dates and data. The default is
    /// `FerryJSONDecoder()`.
    var jsonDecoder: FerryJSONDecoder { get }

    /// Bytes of the body, after decoding, that are held in memory at most. The default is `nil`, the configuration's
    /// (64 MiB).
    var maxBodyBytes: Int? { get }

    /// Whether sending it twice does no harm: on a new connection, when a kept one proves dead before any byte of an
    /// answer came, and by a retry policy. The default is what the method says (RFC 9110, 9.2.2).
    var isIdempotent: Bool { get }

    /// The `Idempotency-Key` that every attempt of a run sends, and by which a retry of any method is safe. The default
    /// is `nil`, none.
    var idempotencyKey: IdempotencyKey? { get }

    /// Whether the ``TraceContext`` of the task or thread that begins a run is sent along. The default is `true`.
    var propagatesTrace: Bool { get }

    /// Whether responses are stored, and who says for how long. The default is ``CachePolicy/configured``, the
    /// configuration's.
    var cachePolicy: CachePolicy { get }

    /// How a start that does not say so itself uses the cache. The default is ``CacheMode/cacheElseNetwork``.
    var cacheMode: CacheMode { get }

    /// The arguments that tell one kept answer from another: leave those out that change all the time and do not
    /// matter. The default is ``arguments``.
    var cacheArguments: Arguments { get }

    /// Names of header fields that tell one kept answer from another. The default is none; credentials always do.
    var cacheHeaders: [String] { get }

    /// Whether this answer, which passed validation, may be kept. Runs where ``value(from:)`` does. The default is
    /// `true`.
    func shouldCache(_ response: Response) -> Bool

    /// Whether runs of the same request that are under way at once share one transfer. The default is `false`.
    ///
    /// Each has its own result, hooks, value and deadline, and the cancel of one leaves the others. Runs that differ in
    /// anything that is sent, credentials above all, in timeouts and policies, or in the sensitive data of their cache
    /// policy, do not share; nor do those of an agent with adapters, a credential provider or cookies in its jar, which
    /// may give each run its own, those whose body is read from a file, a form or a stream, and those whose own policy
    /// for redirects or retries has a rule (`decide`).
    var coalesces: Bool { get }

    /// Replaces the configuration's. The default is `nil`.
    var redirectPolicy: RedirectPolicy? { get }

    /// Replaces the configuration's. The default is `nil`.
    var retryPolicy: RetryPolicy? { get }

    /// Replaces the configuration's. The default is `nil`.
    var addressPolicy: AddressPolicy? { get }

    /// Replaces the configuration's. The default is `nil`.
    var proxy: ProxyConfiguration? { get }

    /// Whether the configuration's authenticator has a say in it. The default is `true`, and `false` where there is a
    /// ``prebuiltRequest``; the request that fetches a token says `false`.
    var usesAuthenticator: Bool { get }

    /// Observers of its runs, besides the configuration's. The default is none.
    var observers: [any RequestObserver] { get }

    /// A mark for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    var tag: String? { get }

    /// What the application wants to find again; Ferry does not look at it. The default is empty.
    var userInfo: [String: any Sendable] { get }

    /// Makes the value. By `await` it runs in the caller's task, otherwise on the processing queue, and never before
    /// the status was accepted.
    ///
    /// What it throws fails the run: a `RequestError` as it is, a `DecodingError` or `JSONMismatch` as `decoding`, a
    /// `JSONSyntaxError` as `invalidJSON`, others as `applicationError`.
    func value(from response: Response) throws -> Value

    /// Sees a reply before the callbacks do. Runs on the processing queue, by `await` in the caller's task. The default
    /// does nothing.
    func completionPreprocessor(_ reply: Reply<Value>)

    /// Sees a failure before the callbacks do, cancellation included. Runs where ``completionPreprocessor(_:)`` does.
    /// The default does nothing.
    func failurePreprocessor(_ error: RequestError)

    /// Sees the result right before the delegate and the closure get it: a reply, or the error, cancellation included.
    /// Runs on the callback queue, by `await` in the caller's task. Of a stream or a download only an error comes here.
    /// The default does nothing.
    func willDeliver(_ result: Result<Reply<Value>, RequestError>)
}

/// What a request says of itself unless it says otherwise.
extension Request {
    /// The configuration's.
    public var baseURL: String? { nil }
    /// The configuration's.
    public var cdnURL: String? { nil }
    /// No.
    public var usesCDN: Bool { false }
    /// GET.
    public var method: HTTPMethod { .get }
    /// None.
    public var headers: Headers { Headers() }
    /// None.
    public var arguments: Arguments { Arguments() }
    /// By the method.
    public var argumentEncoding: ArgumentEncoding { .automatic }
    /// None.
    public var body: RequestBody? { nil }
    /// None.
    public var authorization: Authorization? { nil }
    /// The configuration's.
    public var acceptedEncodings: [ContentEncoding]? { nil }
    /// None.
    public var prebuiltRequest: OutgoingRequest? { nil }
    /// The configuration's.
    public var timeouts: Timeouts? { nil }
    /// The configuration's.
    public var deadline: Duration? { nil }
    /// Normal.
    public var priority: RequestPriority { .normal }
    /// The configuration's.
    public var statusValidation: StatusValidation? { nil }
    /// JSON.
    public var responseFormat: ResponseFormat { .json }
    /// Any.
    public var acceptedContentTypes: [String]? { nil }
    /// None.
    public var jsonSchema: JSONSchema? { nil }
    /// As Foundation's is at first.
    public var jsonDecoder: FerryJSONDecoder { FerryJSONDecoder() }
    /// None.
    public var idempotencyKey: IdempotencyKey? { nil }
    /// Yes.
    public var propagatesTrace: Bool { true }
    /// The configuration's.
    public var cachePolicy: CachePolicy { .configured }
    /// A hit, or the network.
    public var cacheMode: CacheMode { .cacheElseNetwork }
    /// All of them.
    public var cacheArguments: Arguments { arguments }
    /// None.
    public var cacheHeaders: [String] { [] }
    /// Yes.
    public func shouldCache(_ response: Response) -> Bool { true }
    /// No.
    public var coalesces: Bool { false }
    /// The configuration's.
    public var redirectPolicy: RedirectPolicy? { nil }
    /// The configuration's.
    public var retryPolicy: RetryPolicy? { nil }
    /// The configuration's.
    public var addressPolicy: AddressPolicy? { nil }
    /// The configuration's.
    public var proxy: ProxyConfiguration? { nil }
    /// Yes, unless there is a ``prebuiltRequest``.
    public var usesAuthenticator: Bool { prebuiltRequest == nil }
    /// None.
    public var observers: [any RequestObserver] { [] }
    /// The configuration's.
    public var maxBodyBytes: Int? { nil }
    /// The method's, of ``prebuiltRequest`` if there is one.
    public var isIdempotent: Bool { (prebuiltRequest?.method ?? method).isIdempotent }
    /// None.
    public var tag: String? { nil }
    /// Empty.
    public var userInfo: [String: any Sendable] { [:] }
    /// Nothing.
    public func completionPreprocessor(_ reply: Reply<Value>) {}
    /// Nothing.
    public func failurePreprocessor(_ error: RequestError) {}
    /// Nothing.
    public func willDeliver(_ result: Result<Reply<Value>, RequestError>) {}
}

// `Value` and not the concrete type stands in each signature: with the concrete type the default of the associated
// type would be ambiguous.

extension Request where Value == Response {
    /// The response itself.
    public func value(from response: Response) throws -> Value { response }
}

extension Request where Value == Void {
    /// Nothing: what counts is that it went well.
    public func value(from response: Response) throws -> Value { () }
}

extension Request where Value == Data {
    /// The body.
    public func value(from response: Response) throws -> Value { response.body }
}

extension Request where Value == [UInt8] {
    /// The body.
    public func value(from response: Response) throws -> Value { response.bytes }
}

extension Request where Value == String {
    /// The body as text, by the charset of its `Content-Type`: ``Response/text``.
    public func value(from response: Response) throws -> Value { response.text }
}

extension Request where Value == JSON {
    /// The body as JSON. An empty one is `invalidJSON`; where it may be empty the value is `JSON?`.
    public func value(from response: Response) throws -> Value { try response.requireJSON() }
}

extension Request where Value: JSONConvertible {
    /// Made from the body's JSON. Of an empty body an optional is `nil`, anything else `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}

extension Request where Value: Decodable {
    /// Decoded from the body's JSON, by ``jsonDecoder``. Of an empty body an optional is `nil`, anything else
    /// `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.decode(Value.self, from: response, by: jsonDecoder)
    }
}

extension Request where Value: Decodable & JSONConvertible {
    /// Of the two ways the quicker one.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}

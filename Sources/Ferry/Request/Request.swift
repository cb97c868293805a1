public import FerryJSON
package import FerryTransport
public import FoundationEssentials

/// The description of an HTTP request. It is immutable and can be started any number of times, also concurrently.
///
/// The content of a request is read once per run, at its start, in the caller's thread or task, with its task-local
/// values, and every attempt of the run sends the same content: ``path``, ``method``, ``headers``, ``arguments``,
/// ``argumentEncoding``, ``body``, ``authorization``, ``acceptedEncodings``, ``idempotencyKey`` and
/// ``prebuiltRequest``. The settings (servers, timeouts, deadline, policies and all others) are read there too, some of
/// them more than once. Only a started run whose stored response does not pass validation reads the settings of its
/// transfer later, on the processing queue. What concerns a response is read when that is processed: its validation,
/// ``acceptedContentTypes`` once more, and how long ``cacheMode`` permits a stale one.
///
/// Declare only the members that differ: everything except ``path`` has a default. Requests are structs or final
/// classes. An application can share settings with a protocol that refines ``Request`` and has defaults of its own:
///
///     struct UserInfo: Request {
///         typealias Value = User          // Decodable
///         let id: Int
///         var path: String { "/users/\(id)" }
///     }
///     let user = try await agent.send(UserInfo(id: 7)).value
public protocol Request<Value>: Runnable {
    /// The type of the value that is created from the response: `Response` (the default), `Data`, `[UInt8]`, `String`,
    /// `Void`, any `Decodable`, `JSON`, any `JSONConvertible` (which takes precedence over `Decodable`), or any other
    /// type with ``value(from:)``.
    associatedtype Value: Sendable = Response

    /// A path below the base URL, or an absolute URL, which replaces base URL, CDN URL and filters.
    ///
    /// `..` in a path cannot leave the base URL. Characters that a URL cannot contain are percent-encoded as UTF-8;
    /// existing escapes are kept. User and password are taken out of an absolute URL, and its empty path becomes `/`;
    /// the rest is unchanged. Control characters, and white space in an absolute URL, are `invalidURL`.
    var path: String { get }

    /// Replaces the configuration's base URL. The default is `nil`, the configuration's.
    var baseURL: String? { get }

    /// Replaces the configuration's CDN URL. The default is `nil`, the configuration's.
    var cdnURL: String? { get }

    /// Whether the path is joined to the CDN URL instead of the base URL. Without a CDN URL the run fails with
    /// `invalidURL`. The default is `false`.
    var usesCDN: Bool { get }

    /// The method: any token except `CONNECT`, which is `invalidRequest(method)`. The default is `.get`.
    var method: HTTPMethod { get }

    /// The header fields. They override the configuration's fields of the same name and ``authorization``. The default
    /// is none.
    var headers: Headers { get }

    /// The arguments. ``argumentEncoding`` says where they go. The default is none.
    var arguments: Arguments { get }

    /// Where the arguments go. The default is `.automatic`.
    var argumentEncoding: ArgumentEncoding { get }

    /// The body. It is allowed with any method except HEAD, where it is `invalidRequest(framing)`. With a body,
    /// arguments that would go there are left out. The default is `nil`; POST, PUT and PATCH then announce an empty
    /// body.
    var body: RequestBody? { get }

    /// The credentials of this request. The default is `nil`.
    var authorization: Authorization? { get }

    /// The content codings in `Accept-Encoding`. An empty array requests none, and an `Accept-Encoding` header field
    /// takes precedence. The default is `nil`, the configuration's.
    var acceptedEncodings: [ContentEncoding]? { get }

    /// Replaces the configuration's timeouts. The default is `nil`, the configuration's (60 seconds without a byte).
    var timeouts: Timeouts? { get }

    /// The time limit of the whole run, from its start and including its wait in the queue. The default is `nil`, the
    /// configuration's.
    var deadline: Duration? { get }

    /// The priority in the queue. The default is `.normal`.
    var priority: RequestPriority { get }

    /// A complete request that replaces the one described by the other members. Base URL, filters, arguments, header
    /// fields and credentials are ignored, including the configuration's. Priority, timeouts, validation, hooks and
    /// policies apply as usual. Adapters see the request. The authenticator is used only if ``usesAuthenticator`` is
    /// `true`; then its token replaces an `Authorization` field. The default is `nil`.
    var prebuiltRequest: OutgoingRequest? { get }

    /// The accepted status codes. The default is `nil`, the configuration's (200 to 299).
    var statusValidation: StatusValidation? { get }

    /// The format of the response body. The default is `.json`.
    var responseFormat: ResponseFormat { get }

    /// The accepted content types, like `application/json`, `application/*+json`, `text/*` or `*/*`. A response with a
    /// body of another type, or without a type, fails with `invalidContentType`. If it is streamed or downloaded and
    /// does not announce its length, it counts as having a body. The types are sent in the `Accept` field, unless the
    /// request or the configuration sets that field. The default is `nil`, any type.
    var acceptedContentTypes: [String]? { get }

    /// The schema that the body must match, checked before the value is created. A mismatch is `schemaMismatch`; a body
    /// that is empty or not JSON is `invalidJSON`. Keep it in a `static let`, so that it is compiled once. The default
    /// is `nil`.
    var jsonSchema: JSONSchema? { get }

    /// The decoder of a `Decodable` value, with strategies for keys, dates and data. The default is
    /// `FerryJSONDecoder()`.
    var jsonDecoder: FerryJSONDecoder { get }

    /// The size limit of a body in memory after decoding, in bytes. The default is `nil`, the configuration's (64 MiB).
    var maxBodyBytes: Int? { get }

    /// Whether it is safe to send the request twice: on a new connection, if a reused one turns out to be dead before
    /// the first byte of a response, and by a retry policy. The default depends on the method (RFC 9110, 9.2.2), for
    /// which it reads ``prebuiltRequest`` and ``method`` once more.
    var isIdempotent: Bool { get }

    /// The `Idempotency-Key` that every attempt of a run sends. With a key a request of any method can be retried. The
    /// default is `nil`, none.
    var idempotencyKey: IdempotencyKey? { get }

    /// Whether the ``TraceContext`` of the task or thread that starts the run is sent. The default is `true`.
    var propagatesTrace: Bool { get }

    /// Whether responses are stored, and what determines for how long. The default is ``CachePolicy/configured``, the
    /// configuration's policy.
    var cachePolicy: CachePolicy { get }

    /// How the cache is used if the start of the run does not say. The default is ``CacheMode/cacheElseNetwork``.
    var cacheMode: CacheMode { get }

    /// The arguments in the cache key. Leave out arguments that change with every request and do not matter. The
    /// default is ``arguments``, read once more. If others are different each time they are read, the cache is not
    /// used.
    var cacheArguments: Arguments { get }

    /// The names of the header fields in the cache key. Credentials are always part of the key. The default is none.
    var cacheHeaders: [String] { get }

    /// Whether a response may be stored. With a time to live it is called after the response has passed validation,
    /// where ``value(from:)`` is called. With ``CachePolicy/http(shared:sensitiveData:write:)`` it is called before
    /// validation, in the task of the run. The default is `true`.
    func shouldCache(_ response: Response) -> Bool

    /// Whether concurrent runs of the same request share one transfer. The default is `false`.
    ///
    /// Each run has its own result, hooks, value and deadline, and can be cancelled independently. Runs share a
    /// transfer only if everything that is sent (above all credentials), their timeouts and policies, and the sensitive
    /// data of their cache policy are the same. There is no sharing in an agent with adapters, a credential provider or
    /// cookies in its jar, for a body that is read from a file, a form or a stream, or if the request's own redirect or
    /// retry policy has a rule (`decide`).
    var coalesces: Bool { get }

    /// Replaces the configuration's redirect policy. The default is `nil`.
    var redirectPolicy: RedirectPolicy? { get }

    /// Replaces the configuration's retry policy. The default is `nil`.
    var retryPolicy: RetryPolicy? { get }

    /// Replaces the configuration's address policy. The default is `nil`.
    var addressPolicy: AddressPolicy? { get }

    /// Replaces the configuration's proxy. The default is `nil`.
    var proxy: ProxyConfiguration? { get }

    /// Whether the configuration's authenticator adds its token. Set it to `false` in the request that fetches a token.
    /// The default is `true`, but `false` with a ``prebuiltRequest``, which it reads each time.
    var usesAuthenticator: Bool { get }

    /// Observers of the runs of this request, in addition to the configuration's. The default is none.
    var observers: [any RequestObserver] { get }

    /// A tag for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    var tag: String? { get }

    /// Values of the application. Ferry does not read them. The default is empty.
    var userInfo: [String: any Sendable] { get }

    /// Creates the value of a response whose status was accepted. With `await` it runs in the caller's task, otherwise
    /// on the processing queue.
    ///
    /// An error that it throws fails the run: a `RequestError` unchanged, a `DecodingError` or `JSONMismatch` as
    /// `decoding`, a `JSONSyntaxError` as `invalidJSON`, a `CancellationError` as `cancelled`, any other as
    /// `applicationError`.
    func value(from response: Response) throws -> Value

    /// Called with a reply before it is delivered, on the processing queue, or with `await` in the caller's task; not
    /// for a stream or a download. The default implementation does nothing.
    func completionPreprocessor(_ reply: Reply<Value>)

    /// Called with an error before it is delivered, also if the run was cancelled, where ``completionPreprocessor(_:)``
    /// is called. The default implementation does nothing.
    func failurePreprocessor(_ error: RequestError)

    /// Called with the result right before the delegate or closure: a reply or an error, also if the run was cancelled.
    /// It is called on the callback queue, or with `await` in the caller's task. For a stream or a download it is
    /// called only with an error, also if the body fails. The default implementation does nothing.
    func willDeliver(_ result: Result<Reply<Value>, RequestError>)
}

/// The default values of a request.
extension Request {
    /// Replaces the configuration's base URL. The default is `nil`.
    public var baseURL: String? { nil }
    /// Replaces the configuration's CDN URL. The default is `nil`.
    public var cdnURL: String? { nil }
    /// Whether the path is joined to the CDN URL. The default is `false`.
    public var usesCDN: Bool { false }
    /// The method. The default is `.get`.
    public var method: HTTPMethod { .get }
    /// The header fields. The default is none.
    public var headers: Headers { Headers() }
    /// The arguments. The default is none.
    public var arguments: Arguments { .none }
    /// Where the arguments go. The default is `.automatic`, by the method.
    public var argumentEncoding: ArgumentEncoding { .automatic }
    /// The body. The default is `nil`.
    public var body: RequestBody? { nil }
    /// The credentials. The default is `nil`.
    public var authorization: Authorization? { nil }
    /// The accepted content codings. The default is `nil`, the configuration's.
    public var acceptedEncodings: [ContentEncoding]? { nil }
    /// A complete request that replaces the other members. The default is `nil`.
    public var prebuiltRequest: OutgoingRequest? { nil }
    /// Replaces the configuration's timeouts. The default is `nil`.
    public var timeouts: Timeouts? { nil }
    /// The deadline of the run. The default is `nil`, the configuration's.
    public var deadline: Duration? { nil }
    /// The priority in the queue. The default is `.normal`.
    public var priority: RequestPriority { .normal }
    /// The accepted status codes. The default is `nil`, the configuration's.
    public var statusValidation: StatusValidation? { nil }
    /// The format of the response body. The default is `.json`.
    public var responseFormat: ResponseFormat { .json }
    /// The accepted content types. The default is `nil`, any.
    public var acceptedContentTypes: [String]? { nil }
    /// The schema that the body must match. The default is `nil`.
    public var jsonSchema: JSONSchema? { nil }
    /// The decoder of `Decodable` values. The default has the strategies that are Foundation's defaults.
    public var jsonDecoder: FerryJSONDecoder { FerryJSONDecoder() }
    /// The `Idempotency-Key` of each run. The default is `nil`.
    public var idempotencyKey: IdempotencyKey? { nil }
    /// Whether the current ``TraceContext`` is sent. The default is `true`.
    public var propagatesTrace: Bool { true }
    /// Whether responses are stored, and for how long. The default is `.configured`, the configuration's policy.
    public var cachePolicy: CachePolicy { .configured }
    /// How the cache is used. The default is `.cacheElseNetwork`: a stored response, or else the network.
    public var cacheMode: CacheMode { .cacheElseNetwork }
    /// The arguments in the cache key. The default is all ``arguments``.
    public var cacheArguments: Arguments { arguments }
    /// The names of the header fields in the cache key. The default is none.
    public var cacheHeaders: [String] { [] }
    /// Whether a response may be stored. The default is `true`.
    public func shouldCache(_ response: Response) -> Bool { true }
    /// Whether concurrent runs of the same request share one transfer. The default is `false`.
    public var coalesces: Bool { false }
    /// Replaces the configuration's redirect policy. The default is `nil`.
    public var redirectPolicy: RedirectPolicy? { nil }
    /// Replaces the configuration's retry policy. The default is `nil`.
    public var retryPolicy: RetryPolicy? { nil }
    /// Replaces the configuration's address policy. The default is `nil`.
    public var addressPolicy: AddressPolicy? { nil }
    /// Replaces the configuration's proxy. The default is `nil`.
    public var proxy: ProxyConfiguration? { nil }
    /// Whether the configuration's authenticator adds its token. The default is `true`, but `false` with a
    /// ``prebuiltRequest``.
    public var usesAuthenticator: Bool { prebuiltRequest == nil }
    /// Observers of the runs of this request. The default is none.
    public var observers: [any RequestObserver] { [] }
    /// The size limit of a body in memory, in bytes. The default is `nil`, the configuration's.
    public var maxBodyBytes: Int? { nil }
    /// Whether the request may be sent twice. The default depends on the method, that of ``prebuiltRequest`` if there
    /// is one.
    public var isIdempotent: Bool { (prebuiltRequest?.method ?? method).isIdempotent }
    /// A tag for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    public var tag: String? { nil }
    /// Values of the application. The default is empty.
    public var userInfo: [String: any Sendable] { [:] }
    /// Does nothing.
    public func completionPreprocessor(_ reply: Reply<Value>) {}
    /// Does nothing.
    public func failurePreprocessor(_ error: RequestError) {}
    /// Does nothing.
    public func willDeliver(_ result: Result<Reply<Value>, RequestError>) {}
}

// The signatures name `Value` instead of the concrete type; otherwise the default of the associated type would be
// ambiguous.

extension Request where Value == Response {
    /// Returns the response.
    public func value(from response: Response) throws -> Value { response }
}

extension Request where Value == Void {
    /// Returns nothing: the value only means success.
    public func value(from response: Response) throws -> Value { () }
}

extension Request where Value == Data {
    /// Returns the body.
    public func value(from response: Response) throws -> Value { response.body }
}

extension Request where Value == [UInt8] {
    /// Returns the body.
    public func value(from response: Response) throws -> Value { response.bytes }
}

extension Request where Value == String {
    /// Returns the body as text, decoded with the charset of its `Content-Type`: ``Response/text``.
    public func value(from response: Response) throws -> Value { response.text }
}

extension Request where Value == JSON {
    /// Returns the body as JSON. An empty body is `invalidJSON`; if it may be empty, use `JSON?` as the value.
    public func value(from response: Response) throws -> Value { try response.requireJSON() }
}

extension Request where Value: JSONConvertible {
    /// Creates the value from the JSON body. With an empty body an optional is `nil`, and any other value is
    /// `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}

extension Request where Value: Decodable {
    /// Decodes the value from the JSON body with ``jsonDecoder``. With an empty body an optional is `nil`, and any
    /// other value is `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.decode(Value.self, from: response, by: jsonDecoder)
    }
}

extension Request where Value: Decodable & JSONConvertible {
    /// Creates the value as `JSONConvertible`, the faster of the two ways.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}

/// The order in which waiting runs are sent. A steady stream of high-priority runs never starves those of low priority.
public enum RequestPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// After the others.
    case low = -4
    /// The default priority.
    case normal = 0
    /// Before the others.
    case high = 4

    /// Compares by urgency.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }

    package var ring: PriorityRing {
        switch self {
        case .low: .low
        case .normal: .normal
        case .high: .high
        }
    }
}

public import FerryJSON

/// The base class for requests that form a class hierarchy. It declares every member of ``Request``, so that subclasses
/// at any level can override any member.
///
/// The value of a ``BaseRequest`` is always the ``Response``. A `typealias Value = User` in a subclass has no effect,
/// and the compiler does not warn about it. Where the value is used, it says
/// `cannot convert value of type 'Response' to specified type 'User'` or
/// `value of type 'Response' has no member 'name'`. Derive from ``TypedBaseRequest`` to choose the value.
///
///     class ShopRequest: BaseRequest, @unchecked Sendable {
///         override var baseURL: String? { "https://shop.example.com/v1" }
///     }
///     final class Item: ShopRequest, @unchecked Sendable {
///         let id: Int
///         init(id: Int) { self.id = id }
///         override var path: String { "/items/\(id)" }
///     }
///
/// The class has no state. State that a subclass adds must be constant or protected by a lock; the subclass promises
/// this with `@unchecked Sendable`. If the classes of a hierarchy have different values, derive from
/// ``TypedBaseRequest`` and name the value in the subclass:
///
///     class ShopRequest<Value: Sendable>: TypedBaseRequest<Value>, @unchecked Sendable {
///         override var baseURL: String? { "https://shop.example.com/v1" }
///     }
///     final class Price: ShopRequest<Int>, @unchecked Sendable {
///         override var path: String { "/price" }
///     }
///
/// If you do not need a hierarchy, a struct that conforms to ``Request`` is shorter.
open class BaseRequest: TypedBaseRequest<Response>, @unchecked Sendable {
    /// Creates the request.
    public override init() { super.init() }

    /// Returns the response. An error thrown by an override fails the run.
    open override func value(from response: Response) throws -> Response { response }
}

/// The base class of a hierarchy in which each request names its value: ``BaseRequest`` with a type parameter.
///
/// Only the type parameter chooses the value: `final class Price: TypedBaseRequest<Int>`. A `typealias Value` in a
/// subclass has no effect, as with ``BaseRequest``.
open class TypedBaseRequest<Value: Sendable>: Request, @unchecked Sendable {
    /// Creates the request.
    public init() {}

    // MARK: Target

    /// The path. The default is empty, which stands for the base URL itself.
    open var path: String { "" }
    /// Replaces the configuration's base URL. The default is `nil`.
    open var baseURL: String? { nil }
    /// Replaces the configuration's CDN URL. The default is `nil`.
    open var cdnURL: String? { nil }
    /// Whether the path is joined to the CDN URL. The default is `false`.
    open var usesCDN: Bool { false }
    /// The method. The default is `.get`.
    open var method: HTTPMethod { .get }
    /// A complete request that replaces the other members. The default is `nil`.
    open var prebuiltRequest: OutgoingRequest? { nil }

    // MARK: Content

    /// The header fields. The default is none.
    open var headers: Headers { Headers() }
    /// The arguments. The default is none.
    open var arguments: Arguments { Arguments() }
    /// Where the arguments go. The default is `.automatic`, by the method.
    open var argumentEncoding: ArgumentEncoding { .automatic }
    /// The body. The default is `nil`.
    open var body: RequestBody? { nil }
    /// The credentials. The default is `nil`.
    open var authorization: Authorization? { nil }
    /// The accepted content codings. The default is `nil`, the configuration's.
    open var acceptedEncodings: [ContentEncoding]? { nil }

    // MARK: Time and policies

    /// Replaces the configuration's timeouts. The default is `nil`.
    open var timeouts: Timeouts? { nil }
    /// The deadline of the run. The default is `nil`, the configuration's.
    open var deadline: Duration? { nil }
    /// The priority in the queue. The default is `.normal`.
    open var priority: RequestPriority { .normal }
    /// Whether the request may be sent twice. The default depends on the method, that of ``prebuiltRequest`` if there
    /// is one.
    open var isIdempotent: Bool { (prebuiltRequest?.method ?? method).isIdempotent }
    /// Replaces the configuration's redirect policy. The default is `nil`.
    open var redirectPolicy: RedirectPolicy? { nil }
    /// Replaces the configuration's retry policy. The default is `nil`.
    open var retryPolicy: RetryPolicy? { nil }
    /// Replaces the configuration's address policy. The default is `nil`.
    open var addressPolicy: AddressPolicy? { nil }
    /// Replaces the configuration's proxy. The default is `nil`.
    open var proxy: ProxyConfiguration? { nil }
    /// Whether the configuration's authenticator adds its token. The default is `true`, but `false` with a
    /// ``prebuiltRequest``.
    open var usesAuthenticator: Bool { prebuiltRequest == nil }
    /// The `Idempotency-Key` of each run. The default is `nil`.
    open var idempotencyKey: IdempotencyKey? { nil }
    /// Whether the current ``TraceContext`` is sent. The default is `true`.
    open var propagatesTrace: Bool { true }

    // MARK: Caching

    /// Whether responses are stored, and for how long. The default is `.configured`, the configuration's policy.
    open var cachePolicy: CachePolicy { .configured }
    /// How the cache is used. The default is `.cacheElseNetwork`: a stored response, or else the network.
    open var cacheMode: CacheMode { .cacheElseNetwork }
    /// The arguments in the cache key. The default is all ``arguments``.
    open var cacheArguments: Arguments { arguments }
    /// The names of the header fields in the cache key. The default is none.
    open var cacheHeaders: [String] { [] }
    /// Whether a response may be stored. The default is `true`.
    open func shouldCache(_ response: Response) -> Bool { true }
    /// Whether concurrent runs of the same request share one transfer. The default is `false`.
    open var coalesces: Bool { false }

    // MARK: Response

    /// The accepted status codes. The default is `nil`, the configuration's.
    open var statusValidation: StatusValidation? { nil }
    /// The format of the response body. The default is `.json`.
    open var responseFormat: ResponseFormat { .json }
    /// The accepted content types. The default is `nil`, any.
    open var acceptedContentTypes: [String]? { nil }
    /// The schema that the body must match. The default is `nil`.
    open var jsonSchema: JSONSchema? { nil }
    /// The decoder of `Decodable` values. The default has the strategies that are Foundation's defaults.
    open var jsonDecoder: FerryJSONDecoder { FerryJSONDecoder() }
    /// The size limit of a body in memory, in bytes. The default is `nil`, the configuration's.
    open var maxBodyBytes: Int? { nil }
    /// Creates the value as a ``Request`` with this value type does: for `Response`, `Void`, `Data`, `[UInt8]`,
    /// `String`, `JSON`, and `JSONConvertible` or `Decodable` types. For any other type, override it. An error thrown
    /// by an override fails the run.
    open func value(from response: Response) throws -> Value {
        try BodyDecoding.value(Value.self, from: response, by: jsonDecoder)
    }

    // MARK: Observers and hooks

    /// Observers of the runs of this request. The default is none.
    open var observers: [any RequestObserver] { [] }
    /// A tag for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    open var tag: String? { nil }
    /// Values of the application. The default is empty.
    open var userInfo: [String: any Sendable] { [:] }
    /// Does nothing.
    open func completionPreprocessor(_ reply: Reply<Value>) {}
    /// Does nothing.
    open func failurePreprocessor(_ error: RequestError) {}
    /// Does nothing.
    open func willDeliver(_ result: Result<Reply<Value>, RequestError>) {}
}

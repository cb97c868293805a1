public import FerryJSON

/// A base for requests that are a hierarchy of classes: it declares every member of ``Request``, so that a subclass,
/// and a subclass of that, can replace any of them.
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
/// It has no state. What a subclass adds must be constant or behind a lock, as it says itself by `@unchecked Sendable`.
/// The value of a ``BaseRequest`` is the ``Response``. A hierarchy whose members have values of their own derives from
/// ``TypedBaseRequest``, and a subclass names its value there; a `typealias Value` in a subclass has no effect.
///
///     class ShopRequest<Value: Sendable>: TypedBaseRequest<Value>, @unchecked Sendable {
///         override var baseURL: String? { "https://shop.example.com/v1" }
///     }
///     final class Price: ShopRequest<Int>, @unchecked Sendable {
///         override var path: String { "/price" }
///     }
///
/// Where no hierarchy is to be kept, a struct that conforms to ``Request`` says more with less.
open class BaseRequest: TypedBaseRequest<Response>, @unchecked Sendable {
    /// Nothing to be set.
    public override init() { super.init() }

    /// The response itself. What a subclass throws fails the run.
    open override func value(from response: Response) throws -> Response { response }
}

/// The base of a hierarchy of classes in which each request names its value: ``BaseRequest`` with a type parameter.
open class TypedBaseRequest<Value: Sendable>: Request, @unchecked Sendable {
    /// Nothing to be set.
    public init() {}

    // MARK: Where to

    /// The base itself; to be replaced.
    open var path: String { "" }
    /// The configuration's.
    open var baseURL: String? { nil }
    /// The configuration's.
    open var cdnURL: String? { nil }
    /// No.
    open var usesCDN: Bool { false }
    /// GET.
    open var method: HTTPMethod { .get }
    /// None.
    open var prebuiltRequest: OutgoingRequest? { nil }

    // MARK: What with

    /// None.
    open var headers: Headers { Headers() }
    /// None.
    open var arguments: Arguments { Arguments() }
    /// By the method.
    open var argumentEncoding: ArgumentEncoding { .automatic }
    /// None.
    open var body: RequestBody? { nil }
    /// None.
    open var authorization: Authorization? { nil }
    /// The configuration's.
    open var acceptedEncodings: [ContentEncoding]? { nil }

    // MARK: When, and how often

    /// The configuration's.
    open var timeouts: Timeouts? { nil }
    /// The configuration's.
    open var deadline: Duration? { nil }
    /// Normal.
    open var priority: RequestPriority { .normal }
    /// The method's, of ``prebuiltRequest`` if there is one.
    open var isIdempotent: Bool { (prebuiltRequest?.method ?? method).isIdempotent }
    /// The configuration's.
    open var redirectPolicy: RedirectPolicy? { nil }
    /// The configuration's.
    open var retryPolicy: RetryPolicy? { nil }
    /// The configuration's.
    open var addressPolicy: AddressPolicy? { nil }
    /// The configuration's.
    open var proxy: ProxyConfiguration? { nil }
    /// Yes, but for a ``prebuiltRequest``.
    open var usesAuthenticator: Bool { prebuiltRequest == nil }
    /// None.
    open var idempotencyKey: IdempotencyKey? { nil }
    /// Yes.
    open var propagatesTrace: Bool { true }

    // MARK: What is kept

    /// The configuration's.
    open var cachePolicy: CachePolicy { .configured }
    /// A hit, or the network.
    open var cacheMode: CacheMode { .cacheElseNetwork }
    /// All of them.
    open var cacheArguments: Arguments { arguments }
    /// None.
    open var cacheHeaders: [String] { [] }
    /// Yes.
    open func shouldCache(_ response: Response) -> Bool { true }
    /// No.
    open var coalesces: Bool { false }

    // MARK: What comes back

    /// The configuration's.
    open var statusValidation: StatusValidation? { nil }
    /// JSON.
    open var responseFormat: ResponseFormat { .json }
    /// Any.
    open var acceptedContentTypes: [String]? { nil }
    /// None.
    open var jsonSchema: JSONSchema? { nil }
    /// As Foundation's is at first.
    open var jsonDecoder: FerryJSONDecoder { FerryJSONDecoder() }
    /// The configuration's.
    open var maxBodyBytes: Int? { nil }
    /// Made as of a ``Request`` with this value: `Response`, `Void`, `Data`, `[UInt8]`, `String`, `JSON`, what is
    /// `JSONConvertible` or `Decodable`. Of any other type it has to be overridden. What a subclass throws fails the
    /// run.
    open func value(from response: Response) throws -> Value {
        try BodyDecoding.value(Value.self, from: response, by: jsonDecoder)
    }

    // MARK: Who looks on

    /// None.
    open var observers: [any RequestObserver] { [] }
    /// None.
    open var tag: String? { nil }
    /// Empty.
    open var userInfo: [String: any Sendable] { [:] }
    /// Nothing.
    open func completionPreprocessor(_ reply: Reply<Value>) {}
    /// Nothing.
    open func failurePreprocessor(_ error: RequestError) {}
    /// Nothing.
    open func willDeliver(_ result: Result<Reply<Value>, RequestError>) {}
}

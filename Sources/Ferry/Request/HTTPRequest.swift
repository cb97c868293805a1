public import FerryJSON
import FoundationEssentials

/// A request without a type of its own: a mutable value with every member of ``Request``.
///
///     var order = HTTPRequest(.post, "/orders", body: .json(cart), as: Receipt.self)
///     order.deadline = .seconds(2)
///     order.idempotencyKey = .automatic
///     let receipt = try await agent.send(order).value
///
/// `Value` is what the response is made into: the ``Response`` itself, or the type that `as:` names. A type of one's
/// own that conforms to ``Request`` is the better choice where several places send the same request.
///
/// A copy shares the large members, and a member that is not set takes no memory but its place.
public struct HTTPRequest<Value: Sendable>: Request {
    /// A path below the base URL, or an absolute URL: see ``Request/path``.
    public var path: String
    /// The method.
    public var method: HTTPMethod
    /// The header fields.
    public var headers: Headers
    /// The arguments. The default is none.
    public var arguments = Arguments()
    /// Where the arguments go. The default is `.automatic`.
    public var argumentEncoding = ArgumentEncoding.automatic
    /// The body. The default is `nil`.
    public var body: RequestBody?
    /// Replaces the configuration's base URL. The default is `nil`.
    public var baseURL: String?
    /// Replaces the configuration's CDN. The default is `nil`.
    public var cdnURL: String?
    /// Whether the path is joined to the CDN. The default is `false`.
    public var usesCDN = false
    /// A bound over the whole run. The default is `nil`, the configuration's.
    public var deadline: Duration?
    /// The priority among requests that wait. The default is `.normal`.
    public var priority = RequestPriority.normal
    /// The content types that are accepted. The default is `nil`, any.
    public var acceptedContentTypes: [String]?
    /// The content codings asked for. The default is `nil`, the configuration's.
    public var acceptedEncodings: [ContentEncoding]?
    /// The schema that the body must match. The default is `nil`.
    public var jsonSchema: JSONSchema?
    /// The bound of the body in memory, in bytes. The default is `nil`, the configuration's.
    public var maxBodyBytes: Int?
    /// How the cache is used. The default is ``CacheMode/cacheElseNetwork``.
    public var cacheMode = CacheMode.cacheElseNetwork
    /// Header fields that tell one stored response from another. The default is none.
    public var cacheHeaders: [String] = []
    /// Whether equal requests in flight share one transfer. The default is `false`.
    public var coalesces = false
    /// Whether the configuration's authenticator adds its token. The default is `true`.
    public var usesAuthenticator = true
    /// Whether the ``TraceContext`` at hand is sent along. The default is `true`.
    public var propagatesTrace = true
    /// Observers of this request, besides the configuration's. The default is none.
    public var observers: [any RequestObserver] = []
    /// A mark for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    public var tag: String?
    /// Values of the application, which Ferry does not read. The default is empty.
    public var userInfo: [String: any Sendable] = [:]

    @Boxed private var ownAuthorization: Authorization?
    @Boxed private var ownTimeouts: Timeouts?
    @Boxed private var ownStatusValidation: StatusValidation?
    @Boxed private var ownResponseFormat: ResponseFormat?
    @Boxed private var ownDecoder: FerryJSONDecoder?
    @Boxed private var ownCachePolicy: CachePolicy?
    @Boxed private var ownCacheArguments: Arguments?
    @Boxed private var ownRedirectPolicy: RedirectPolicy?
    @Boxed private var ownRetryPolicy: RetryPolicy?
    @Boxed private var ownAddressPolicy: AddressPolicy?
    @Boxed private var ownProxy: ProxyConfiguration?
    @Boxed private var ownIdempotencyKey: IdempotencyKey?
    private var ownIsIdempotent: Bool?

    private let make: @Sendable (Response, FerryJSONDecoder) throws -> Value

    /// A request whose value `make` makes, from a response whose status was accepted: see ``Request/value(from:)``.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        making make: @escaping @Sendable (Response) throws -> Value
    ) {
        self.init(method, path, headers, body) { response, _ in try make(response) }
    }

    private init(
        _ method: HTTPMethod, _ path: String, _ headers: Headers, _ body: RequestBody?,
        _ make: @escaping @Sendable (Response, FerryJSONDecoder) throws -> Value
    ) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.make = make
    }

    /// What the request's `as:` names.
    public func value(from response: Response) throws -> Value { try make(response, jsonDecoder) }
}

// MARK: The value

extension HTTPRequest {
    /// The body itself, where that is the value; asked at run time, so that code that is generic over `Decodable` gets
    /// what other code gets.
    private static func plain(_ response: Response) throws -> Value? {
        if Value.self == Data.self { return response.body as? Value }
        if Value.self == String.self { return response.text as? Value }
        if Value.self == [UInt8].self { return response.bytes as? Value }
        if Value.self == JSON.self { return try response.requireJSON() as? Value }
        return nil
    }
}

extension HTTPRequest where Value == Response {
    /// A request whose value is the response.
    public init(_ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.init(method, path, headers, body) { response, _ in response }
    }
}

extension HTTPRequest where Value == Void {
    /// A request without a value.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Void.Type
    ) {
        self.init(method, path, headers, body) { _, _ in }
    }
}

extension HTTPRequest where Value: Decodable {
    /// A request whose value is decoded from the body's JSON by ``jsonDecoder``. `Data`, `[UInt8]`, `String` and
    /// `JSON` are the body itself, as for ``Request/Value``.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Value.Type
    ) {
        self.init(method, path, headers, body) { response, decoder in
            try Self.plain(response) ?? BodyDecoding.decode(Value.self, from: response, by: decoder)
        }
    }
}

extension HTTPRequest where Value: JSONConvertible {
    /// A request whose value is made from the body's JSON.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Value.Type
    ) {
        self.init(method, path, headers, body) { response, _ in
            try Self.plain(response) ?? BodyDecoding.convert(Value.self, from: response)
        }
    }
}

extension HTTPRequest where Value: Decodable & JSONConvertible {
    /// A request whose value is made from the body's JSON, by the quicker of the two ways.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Value.Type
    ) {
        self.init(method, path, headers, body) { response, _ in
            try Self.plain(response) ?? BodyDecoding.convert(Value.self, from: response)
        }
    }
}

// MARK: Members that few requests set

extension HTTPRequest {
    /// The credentials. The default is `nil`.
    public var authorization: Authorization? {
        get { ownAuthorization }
        set { ownAuthorization = newValue }
    }
    /// Replaces the configuration's timeouts. The default is `nil`.
    public var timeouts: Timeouts? {
        get { ownTimeouts }
        set { ownTimeouts = newValue }
    }
    /// Which status codes are a success. The default is `nil`, the configuration's.
    public var statusValidation: StatusValidation? {
        get { ownStatusValidation }
        set { ownStatusValidation = newValue }
    }
    /// What the body is taken for. The default is `.json`.
    public var responseFormat: ResponseFormat {
        get { ownResponseFormat ?? .json }
        set { ownResponseFormat = newValue }
    }
    /// How a `Decodable` value is decoded. The default is `FerryJSONDecoder()`.
    public var jsonDecoder: FerryJSONDecoder {
        get { ownDecoder ?? FerryJSONDecoder() }
        set { ownDecoder = newValue }
    }
    /// Whether responses are stored. The default is ``CachePolicy/configured``.
    public var cachePolicy: CachePolicy {
        get { ownCachePolicy ?? .configured }
        set { ownCachePolicy = newValue }
    }
    /// The arguments that tell one stored response from another. The default is ``arguments``.
    public var cacheArguments: Arguments {
        get { ownCacheArguments ?? arguments }
        set { ownCacheArguments = newValue }
    }
    /// Replaces the configuration's redirect policy. The default is `nil`.
    public var redirectPolicy: RedirectPolicy? {
        get { ownRedirectPolicy }
        set { ownRedirectPolicy = newValue }
    }
    /// Replaces the configuration's retry policy. The default is `nil`.
    public var retryPolicy: RetryPolicy? {
        get { ownRetryPolicy }
        set { ownRetryPolicy = newValue }
    }
    /// Replaces the configuration's address policy. The default is `nil`.
    public var addressPolicy: AddressPolicy? {
        get { ownAddressPolicy }
        set { ownAddressPolicy = newValue }
    }
    /// Replaces the configuration's proxy. The default is `nil`.
    public var proxy: ProxyConfiguration? {
        get { ownProxy }
        set { ownProxy = newValue }
    }
    /// The `Idempotency-Key` of each run. The default is `nil`.
    public var idempotencyKey: IdempotencyKey? {
        get { ownIdempotencyKey }
        set { ownIdempotencyKey = newValue }
    }
    /// Whether the request may be sent twice. The default is what the method says (RFC 9110, 9.2.2).
    public var isIdempotent: Bool {
        get { ownIsIdempotent ?? method.isIdempotent }
        set { ownIsIdempotent = newValue }
    }
}

/// A member that is large and rarely set: one pointer in its owner.
@propertyWrapper
private struct Boxed<Content: Sendable>: Sendable {
    private final class Box: Sendable {
        let content: Content
        init(_ content: Content) { self.content = content }
    }

    private var box: Box?

    var wrappedValue: Content? {
        get { box?.content }
        set { box = newValue.map { Box($0) } }
    }
}

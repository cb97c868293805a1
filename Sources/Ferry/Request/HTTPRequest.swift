public import FerryJSON
import FoundationEssentials

/// A request without a type of its own: a mutable value with the members of ``Request`` except its hooks.
///
///     var order = HTTPRequest(.post, "/orders", body: .json(cart), as: Receipt.self)
///     order.deadline = .seconds(2)
///     order.idempotencyKey = .automatic
///     let receipt = try await agent.send(order).value
///
/// `Value` is the type of the result: the ``Response`` itself, or the type that `as:` names. If several places send the
/// same request, define a type that conforms to ``Request`` instead.
///
/// Copies share large members, and a large member that is not set takes only the memory of a pointer.
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
    /// Replaces the configuration's CDN URL. The default is `nil`.
    public var cdnURL: String?
    /// Whether the path is joined to the CDN. The default is `false`.
    public var usesCDN = false
    /// The deadline of the whole run. The default is `nil`, the configuration's.
    public var deadline: Duration?
    /// The priority in the queue. The default is `.normal`.
    public var priority = RequestPriority.normal
    /// The content types that are accepted. The default is `nil`, any.
    public var acceptedContentTypes: [String]?
    /// The accepted content codings. The default is `nil`, the configuration's.
    public var acceptedEncodings: [ContentEncoding]?
    /// The schema that the body must match. The default is `nil`.
    public var jsonSchema: JSONSchema?
    /// The size limit of a body in memory, in bytes. The default is `nil`, the configuration's.
    public var maxBodyBytes: Int?
    /// How the cache is used. The default is ``CacheMode/cacheElseNetwork``.
    public var cacheMode = CacheMode.cacheElseNetwork
    /// The names of the header fields in the cache key. The default is none.
    public var cacheHeaders: [String] = []
    /// Whether concurrent runs of the same request share one transfer. The default is `false`.
    public var coalesces = false
    /// Whether the configuration's authenticator adds its token. The default is `true`.
    public var usesAuthenticator = true
    /// Whether the current ``TraceContext`` is sent. The default is `true`.
    public var propagatesTrace = true
    /// Observers of this request, in addition to the configuration's. The default is none.
    public var observers: [any RequestObserver] = []
    /// A tag for ``NetworkAgent/cancelAll(tagged:)``. The default is `nil`.
    public var tag: String?
    /// Values of the application. Ferry does not read them. The default is empty.
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

    /// Creates a request whose value `make` creates from a response with an accepted status: see
    /// ``Request/value(from:)``.
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

    /// Creates the value of the type that `as:` names.
    public func value(from response: Response) throws -> Value { try make(response, jsonDecoder) }
}

// MARK: The value

extension HTTPRequest {
    /// The body itself if that is the value. This is decided at run time, so that code that is generic over `Decodable`
    /// gets the same result as other code.
    private static func plain(_ response: Response) throws -> Value? {
        if Value.self == Data.self { return response.body as? Value }
        if Value.self == String.self { return response.text as? Value }
        if Value.self == [UInt8].self { return response.bytes as? Value }
        if Value.self == JSON.self { return try response.requireJSON() as? Value }
        return nil
    }
}

extension HTTPRequest where Value == Response {
    /// Creates a request whose value is the response.
    public init(_ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.init(method, path, headers, body) { response, _ in response }
    }
}

extension HTTPRequest where Value == Void {
    /// Creates a request without a value.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Void.Type
    ) {
        self.init(method, path, headers, body) { _, _ in }
    }
}

extension HTTPRequest where Value: Decodable {
    /// Creates a request whose value ``jsonDecoder`` decodes from the JSON body. `Data`, `[UInt8]`, `String` and `JSON`
    /// are the body itself, as for ``Request/Value``.
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
    /// Creates a request whose `JSONConvertible` value is created from the JSON body.
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
    /// Creates a request whose value is created from the JSON body as `JSONConvertible`, the faster of the two ways.
    public init(
        _ method: HTTPMethod, _ path: String, headers: Headers = Headers(), body: RequestBody? = nil,
        as type: Value.Type
    ) {
        self.init(method, path, headers, body) { response, _ in
            try Self.plain(response) ?? BodyDecoding.convert(Value.self, from: response)
        }
    }
}

// MARK: Rarely used members

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
    /// The accepted status codes. The default is `nil`, the configuration's.
    public var statusValidation: StatusValidation? {
        get { ownStatusValidation }
        set { ownStatusValidation = newValue }
    }
    /// The format of the response body. The default is `.json`.
    public var responseFormat: ResponseFormat {
        get { ownResponseFormat ?? .json }
        set { ownResponseFormat = newValue }
    }
    /// The decoder of a `Decodable` value. The default is `FerryJSONDecoder()`.
    public var jsonDecoder: FerryJSONDecoder {
        get { ownDecoder ?? FerryJSONDecoder() }
        set { ownDecoder = newValue }
    }
    /// Whether responses are stored. The default is ``CachePolicy/configured``.
    public var cachePolicy: CachePolicy {
        get { ownCachePolicy ?? .configured }
        set { ownCachePolicy = newValue }
    }
    /// The arguments in the cache key. The default is ``arguments``.
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
    /// Whether the request may be sent twice. The default depends on the method (RFC 9110, 9.2.2).
    public var isIdempotent: Bool {
        get { ownIsIdempotent ?? method.isIdempotent }
        set { ownIsIdempotent = newValue }
    }
}

/// A large, rarely used member: one pointer in its owner.
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

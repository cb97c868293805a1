public import FerryJSON

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
    public var custom: OutgoingRequest? { nil }
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
    /// Nothing is kept.
    public var cachePolicy: CachePolicy { .none }
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
    /// Yes, unless there is a ``custom`` request.
    public var usesAuthenticator: Bool { custom == nil }
    /// None.
    public var observers: [any RequestObserver] { [] }
    /// The configuration's.
    public var maxBodyBytes: Int? { nil }
    /// The method's, of ``custom`` if there is one.
    public var isIdempotent: Bool { (custom?.method ?? method).isIdempotent }
    /// None.
    public var tag: String? { nil }
    /// Empty.
    public var userInfo: [String: any Sendable] { [:] }
    /// Nothing.
    public func completionPreprocessor(_ reply: Reply<Value>) {}
    /// Nothing.
    public func failurePreprocessor(_ error: RequestError) {}
    /// Nothing.
    public func completionFilter(_ reply: Reply<Value>) {}
    /// Nothing.
    public func failureFilter(_ error: RequestError) {}
}

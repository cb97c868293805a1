/// One HTTP request as it is about to leave: what adapters change, interceptors look at, and ``Request/custom`` gives
/// whole.
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

    /// The body; arguments that go there are in it already.
    public var body: RequestBody? { didSet { changes &+= 1 } }

    /// How often the body was set.
    private(set) var changes: UInt8 = 0

    /// A request of its parts; GET, without fields and body, unless they are named.
    public init(method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

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

    /// The body; arguments that go there are in it already. To adapters its content type stands among the ``headers``;
    /// where they set another body that names a type, that takes its place, unless they have changed the field, or the
    /// request's own headers have one.
    public var body: RequestBody? {
        didSet {
            changes &+= 1
            guard let bodyType, headers["Content-Type"] == bodyType, let type = body?.contentType else { return }
            headers["Content-Type"] = type
            self.bodyType = type
        }
    }

    /// How often the body was set.
    private(set) var changes: UInt8 = 0

    /// The `Content-Type` among the headers that came with the body.
    private var bodyType: String?

    /// A request of its parts; GET, without fields and body, unless they are named.
    public init(method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Its body has brought the `Content-Type` that stands among its headers, if there is one.
    mutating func noteBodyType() { if body != nil { bodyType = headers["Content-Type"] } }
}

import FerryTransport
public import FoundationEssentials

/// Changes requests before they are sent: adds a signature, a trace header, a token.
///
/// Adapters run in their order, each on the result of the one before, for every attempt of a run, in a task of the run.
/// They do not run for a redirect to another place, because what they add is meant for the original server. If the
/// origin changes, header fields that they added are dropped. A body that they set is never sent to another origin: a
/// redirect that keeps the body ends the run with `redirectForbidden(policy)`.
public protocol RequestAdapter: Sendable {
    /// Changes `request`. An error fails the run: a `RequestError` unchanged, a `CancellationError` as `cancelled`, any
    /// other as `applicationError`.
    func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws
}

/// Responds to requests without the network.
///
/// Interceptors are asked in their order, after the adapters, for every attempt of a run including redirects, in a task
/// of the run. The first that responds is the last that is asked. Its response is handled like one from the network:
/// redirects, retries, validation, hooks and callbacks apply.
public protocol RequestInterceptor: Sendable {
    /// Returns the response, or `nil` to pass the request on. An error fails the run: a `RequestError` unchanged, a
    /// `CancellationError` as `cancelled`, any other as `applicationError`.
    func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse?
}

/// A response that did not come from the network.
public struct InterceptedResponse: Sendable {
    /// The status code, 200 to 999.
    public var status: Int
    /// The header fields. An invalid field fails the run with `malformedResponse`.
    public var headers: Headers
    /// The body as it is delivered. It is not decoded.
    public var body: Data
    /// Whether the response claims to come from a cache. The default is `false`.
    public var isFromCache: Bool

    /// Creates a response.
    public init(status: Int = 200, headers: Headers = Headers(), body: Data = Data(), isFromCache: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isFromCache = isFromCache
    }
}

extension InterceptedResponse {
    /// Status line and fields as on the wire. A line break in a field must not make two fields of it.
    func head() throws(TransferFailure) -> [UInt8] {
        var head = "HTTP/1.1 \(status) \r\n"
        for field in headers {
            if (field.name + field.value).utf8.contains(where: { $0 == 0x0D || $0 == 0x0A }) {
                throw TransferFailure(.malformedResponse, .header)
            }
            head += "\(field.name): \(field.value)\r\n"
        }
        return Array((head + "\r\n").utf8)
    }
}

/// Adds a token to requests, and gets a new one when a server refuses it. One refresh serves all runs that wait for it;
/// these are then sent again.
///
///     struct Session: Authenticator {
///         func apply(_ token: String, to request: inout OutgoingRequest) {
///             request.headers["Authorization"] = "Bearer \(token)"
///         }
///         func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
///             try await agent.send(FetchToken()).value
///         }
///     }
///     configuration.authenticator = Session()
///
/// Runs that a refresh starts in its own task carry no token and wait for no refresh, so a refresh cannot wait for
/// itself. A run is sent again only once. If the new token is refused too, or the refresh fails, the run ends with the
/// response it has. The same applies to all runs that were active with the same token, without another refresh. A run
/// whose body can be read only once is not sent again; the token is refreshed for later runs. A run that never had a
/// token ends with the code and the message of the failed refresh, in the phase `preparing`, with that error as its
/// ``RequestError/cause``.
///
/// Some resources refuse every token. ``NetworkConfiguration/refreshLimit`` limits the refreshes that they cause. While
/// other runs succeed with a token, a resource that refused it when it was new does not cause another refresh.
///
/// The token is sent to the configuration's base URL and CDN URL, and to those that a request names itself. It is not
/// sent to an absolute URL of another origin, even if an adapter has changed the URL, and a refusal from there causes
/// no refresh. If the configuration names no servers, the token is sent to any server. After a redirect it is sent only
/// to the original origin. If the token is in the body, a redirect to another origin that keeps the body ends the run
/// with `redirectForbidden(policy)`.
public protocol Authenticator<Token>: Sendable {
    /// The type of the token.
    associatedtype Token: Sendable

    /// The initial token; `nil` gets one before the first request. The default is `nil`.
    var token: Token? { get }

    /// Adds the token to a request.
    func apply(_ token: Token, to request: inout OutgoingRequest)

    /// Gets a token to replace `old`, which was refused; `old` is `nil` if there was none yet.
    func refresh(_ old: Token?, with agent: NetworkAgent) async throws -> Token

    /// Whether this response means that the token was refused: the request is then sent again with another token. Also
    /// called for redirects, before they are followed. The default is status 401.
    func isRefused(_ response: Response) -> Bool

    /// The expiry of a token; called once for each token. The default is `nil`, unknown: then the token is replaced
    /// when it is refused.
    ///
    /// A token that expires within ``NetworkConfiguration/tokenRefreshLead`` is replaced while requests are still sent
    /// with it. An expired token is not sent any more, and requests wait for the next one. If ``RefreshLimit`` is
    /// reached, perhaps because this machine's clock is wrong, the token is sent nevertheless.
    func expiration(of token: Token) -> Date?
}

/// The limit for refreshes of refused tokens, so that a resource that refuses every token does not cause endless
/// refreshes.
///
/// A refresh counts unless it helped, that is, unless the run that started it was then accepted. So an expired token is
/// always replaced, however often that happens. Getting the first token does not count. A run that is refused after the
/// limit was reached ends with the response it has.
///
/// Refreshes of tokens that have expired (``Authenticator/expiration(of:)``) have a limit of their own, of the same
/// size but at least 1: such a refresh counts if it fails, or if its token has expired when it comes.
public struct RefreshLimit: Sendable, Hashable {
    /// The maximum number of refreshes within ``window``. The default is 3; with 0, no refused token is refreshed.
    public var maxRefreshes: Int

    /// The time window. The default is 60 seconds.
    public var window: Duration

    /// Creates a limit. Parameters that are left out have their defaults.
    public init(maxRefreshes: Int = 3, window: Duration = .seconds(60)) {
        self.maxRefreshes = maxRefreshes
        self.window = window
    }
}

extension Authenticator {
    /// `nil`: the first token is fetched before the first request.
    public var token: Token? { nil }
    /// Whether the status is 401.
    public func isRefused(_ response: Response) -> Bool { response.status == 401 }
    /// `nil`, unknown.
    public func expiration(of token: Token) -> Date? { nil }
}

import FerryTransport
public import FoundationEssentials

/// Changes requests before they leave: a signature, a trace header, a token.
///
/// Adapters run in their order, each on what the one before has made, anew for every attempt of a run, in a task of the
/// run. A redirect to another place passes them by: what they add is meant for the server that was asked. Where the
/// origin changes, header fields of theirs stay behind, and a body of theirs goes nowhere: a redirect that keeps the
/// body ends the run with `redirectForbidden(policy)`.
public protocol RequestAdapter: Sendable {
    /// Changes `request`. What is thrown fails the run: a `RequestError` as it is, anything else as `applicationError`.
    func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws
}

/// May answer a run by itself, without the network.
///
/// Interceptors are asked in their order, after the adapters, for every attempt of a run, redirects included, in a task
/// of the run; the first that answers is the last that is asked. An answer goes the way of one from the network:
/// redirects, retries, validation, hooks and callbacks.
public protocol RequestInterceptor: Sendable {
    /// The answer, or `nil` to pass the request on. What is thrown fails the run: a `RequestError` as it is, anything
    /// else as `applicationError`.
    func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse?
}

/// An answer that came from no network.
public struct InterceptedResponse: Sendable {
    /// The status code, 200 to 999.
    public var status: Int
    /// The header fields; what is no field fails the run with `malformedResponse`.
    public var headers: Headers
    /// The body, as it is to be handed over: nothing is decoded.
    public var body: Data
    /// Whether the response calls itself one from a cache. The default is `false`.
    public var isFromCache: Bool

    /// An answer of its parts.
    public init(status: Int = 200, headers: Headers = Headers(), body: Data = Data(), isFromCache: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isFromCache = isFromCache
    }
}

extension InterceptedResponse {
    /// Status line and fields as they would stand on the wire. A line break in a field must not make two of it.
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

/// Puts a token on requests, and fetches a new one when a server does not accept it any more: once for all the runs
/// that wait for it, which are then sent again.
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
/// Runs that a refresh starts itself, in its own task, carry no token and wait for no refresh, so it cannot wait for
/// itself. A run is sent again once; when the new token is not accepted either, or the refresh fails, it ends with the
/// answer it has: so do all that were under way with the same token, without another refresh. One whose body can be
/// read only once is not sent again; the token is refreshed for those that follow. A run that never had a token ends
/// with the code and the message of what the refresh threw, in the phase `preparing`, with that as its
/// ``RequestError/cause``.
///
/// Some resources refuse every token. ``NetworkConfiguration/refreshLimit`` bounds the refreshes that they cause. While
/// other runs are accepted with a token, a resource that has refused it when it was new does not have it replaced.
///
/// The token is meant for base and CDN of the configuration, and for the base or CDN that a request names for itself.
/// To an absolute URL of another origin it does not go, also where an adapter has sent the request there, and a refusal
/// from there refreshes nothing; where the configuration names no servers it goes anywhere. On a redirect it goes only
/// to the origin that was asked first; with a token in its body, a redirect to another one that keeps the body ends the
/// run with `redirectForbidden(policy)`.
public protocol Authenticator<Token>: Sendable {
    /// What is put on requests.
    associatedtype Token: Sendable

    /// The token to begin with; `nil` fetches one before the first request. The default is `nil`.
    var token: Token? { get }

    /// Puts the token on a request.
    func apply(_ token: Token, to request: inout OutgoingRequest)

    /// Fetches a token in the place of `old`, which was not accepted; `nil` when there was none yet.
    func refresh(_ old: Token?, with agent: NetworkAgent) async throws -> Token

    /// Whether this answer says that the token is not accepted. The default is status 401.
    func isRefused(_ response: Response) -> Bool

    /// When a token expires; asked once for each. The default is `nil`, not known: then it is replaced when it is
    /// refused.
    ///
    /// A token that expires within ``NetworkConfiguration/tokenRefreshLead`` is replaced while requests still go out
    /// with it; one that has expired is sent no more, and requests wait for the next. Where ``RefreshLimit`` is
    /// reached, perhaps as this machine's clock is wrong, the token is sent as it is.
    func expiration(of token: Token) -> Date?
}

/// How often a refused token is refreshed, so that a resource that refuses every token does not have tokens fetched for
/// ever.
///
/// A refresh counts unless it helped: unless the run that started it was then accepted. So a token that expires is
/// always replaced, however often that is. The fetch of the first token does not count. A run that is refused when the
/// limit is reached ends with the response it has.
///
/// Refreshes of tokens that have expired (``Authenticator/expiration(of:)``) have a limit of their own, of the same
/// size but at least 1: such a refresh counts if it fails, or if its token has expired when it comes.
public struct RefreshLimit: Sendable, Hashable {
    /// How many refreshes there may be within ``window``. The default is 3; 0 refreshes no token that is refused.
    public var maxRefreshes: Int

    /// The default is 60 seconds.
    public var window: Duration

    /// A limit with the defaults, and what is named here.
    public init(maxRefreshes: Int = 3, window: Duration = .seconds(60)) {
        self.maxRefreshes = maxRefreshes
        self.window = window
    }
}

extension Authenticator {
    /// None: one is fetched before the first request.
    public var token: Token? { nil }
    /// Status 401.
    public func isRefused(_ response: Response) -> Bool { response.status == 401 }
    /// Not known.
    public func expiration(of token: Token) -> Date? { nil }
}

import FerryTransport

/// Which redirects are followed, and how (RFC 9110, 15.4).
///
/// Ferry follows redirects itself, one at a time, rather than leaving them to libcurl:
///
/// - 301 and 302 turn a POST into a GET without a body, as in browsers. 303 turns any method except HEAD into GET. 307
///   and 308 keep method and body; a body that can be sent only once is `bodyNotReplayable`.
/// - Only http and https are followed. A redirect from https to http is `redirectForbidden(.downgrade)` unless
///   ``allowsDowngrade`` is set.
/// - When a redirect leaves the origin (scheme, host and port), `Authorization`, `Cookie`, `Proxy-Authorization` and
///   the ``sensitiveHeaders`` are dropped, and stay dropped even if a later redirect comes back. So are `Host`,
///   `Origin` and `Referer` of the request, which refer to the old origin. User and password in a `Location` are never
///   sent, and no `Referer` is added.
/// - Every redirect counts, also in a loop. One more than the limit is `tooManyRedirects`.
///
/// Other responses of class 3 (300, 304, 305, 306), and those without a `Location`, are delivered.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.redirectPolicy = .follow(upTo: 3, sensitiveHeaders: ["X-Api-Key"]) { hop in
///         hop.host.hasSuffix(".example.com") ? .follow : .refuse
///     }
public struct RedirectPolicy: Sendable {
    /// The maximum number of redirects of one run. With `nil` no redirect is followed, and the response is delivered.
    public var limit: Int?

    /// Whether redirects from https to http are followed, without the secrets. The default is `false`.
    public var allowsDowngrade: Bool

    /// The names of header fields that are dropped like `Authorization` when the origin changes. The default is none.
    ///
    /// In the configuration's policy these fields are secret everywhere, like
    /// ``NetworkConfiguration/sensitiveHeaders``. In a request's own policy they are secret for its runs: in redirects,
    /// the log, the curl command and the cache key. Which of the configuration's fields are sent to a foreign server
    /// depends only on the configuration.
    public var sensitiveHeaders: [String]

    /// Whether 301 and 302 keep the method POST, as RFC 9110 recommends, unlike browsers. The default is `false`.
    public var keepsMethodOn301And302: Bool

    /// Whether the fields of a ``TraceContext`` are sent to other origins than that of the request, too. The default is
    /// `false`.
    public var keepsTraceContext = false

    /// A rule of your own, like a list of hosts, which is called for each redirect that the rest of the policy allows.
    /// It can restrict the policy, but not extend it. It is called on one of Ferry's threads, so it must not block. The
    /// default is `nil`.
    public var decide: (@Sendable (RedirectHop) -> RedirectDecision)?

    /// Follows up to this many redirects.
    public static func follow(
        upTo limit: Int = 10, allowsDowngrade: Bool = false, sensitiveHeaders: [String] = [],
        keepsMethodOn301And302: Bool = false, decide: (@Sendable (RedirectHop) -> RedirectDecision)? = nil
    ) -> RedirectPolicy {
        RedirectPolicy(
            limit: max(limit, 0), allowsDowngrade: allowsDowngrade, sensitiveHeaders: sensitiveHeaders,
            keepsMethodOn301And302: keepsMethodOn301And302, decide: decide)
    }

    /// Follows up to ten redirects. This is the default of an agent.
    public static var `default`: RedirectPolicy { .follow() }

    /// Follows no redirects: such a response is delivered like any other, and fails the status validation unless that
    /// accepts it.
    public static var none: RedirectPolicy {
        RedirectPolicy(
            limit: nil, allowsDowngrade: false, sensitiveHeaders: [], keepsMethodOn301And302: false, decide: nil)
    }
}

/// The decision of a rule about a redirect.
public enum RedirectDecision: Sendable, Hashable {
    /// Follow it.
    case follow
    /// Deliver the response.
    case deliver
    /// Fail with `redirectForbidden(.policy)`.
    case refuse
}

/// A redirect that was followed, without secrets: query values are redacted.
public struct Redirect: Sendable, Hashable, CustomStringConvertible {
    /// The status of the redirect.
    public let status: Int
    /// The redacted URL that sent the redirect.
    public let source: String
    /// The redacted target URL.
    public let target: String

    init(status: Int, source: String, target: String) {
        self.status = status
        self.source = Redaction.url(source)
        self.target = Redaction.url(target)
    }

    /// `302 http://a/x → http://b/y`
    public var description: String { "\(status) \(source) → \(target)" }
}

/// A redirect that is about to be followed, as passed to ``RedirectPolicy/decide``.
public struct RedirectHop: Sendable, CustomStringConvertible {
    /// 1 for the first redirect of the run.
    public let number: Int
    /// The status of the redirect.
    public let status: Int
    /// The method of the next request.
    public let method: HTTPMethod
    /// The URL that sent the redirect.
    public let source: String
    /// The absolute target URL, without user and password.
    public let target: String
    /// The scheme of the target, `https` or `http`.
    public let scheme: String
    /// The target's host in the form that libcurl connects to: lower case, punycode, complete addresses (`127.1` is
    /// `127.0.0.1`), and an IPv6 address in brackets.
    public let host: String
    /// The target's port.
    public let port: Int
    /// Whether scheme, host and port are those of the URL that sent the redirect.
    public let isSameOrigin: Bool

    init(number: Int, status: Int, method: HTTPMethod, source: URLParts, target: URLParts) {
        self.number = number
        self.status = status
        self.method = method
        self.source = source.text
        self.target = target.text
        scheme = target.scheme
        host = target.host
        port = Int(target.port)
        isSameOrigin = source.isSameOrigin(as: target)
    }

    /// One line without secrets.
    public var description: String { "\(number): \(Redirect(status: status, source: source, target: target))" }
}

extension RedirectHop: CustomReflectable {
    /// The members of the description, so that `dump` shows no query values either.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["number": number, "redirect": Redirect(status: status, source: source, target: target)])
    }
}

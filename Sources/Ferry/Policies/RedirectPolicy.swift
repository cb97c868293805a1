import FerryTransport

/// Whether and how answers that point elsewhere are followed (RFC 9110, 15.4).
///
/// Redirects are followed by Ferry, not by libcurl, hop by hop:
///
/// - 301 and 302 make a GET of a POST, without its body, as browsers do; 303 makes a GET of everything but HEAD; 307
///   and 308 keep method and body. A body that can be made only once is `bodyNotReplayable`.
/// - Only http and https are followed. From https to http is `redirectForbidden(.downgrade)` unless ``allowsDowngrade``
///   is set.
/// - Once a redirect has left the origin (scheme, host and port), `Authorization`, `Cookie`, `Proxy-Authorization` and
///   the ``sensitiveHeaders`` are dropped, and stay dropped even if a later redirect comes back; so are `Host`,
///   `Origin` and `Referer` of the request's own, which speak of the origin that was left. User and password in a
///   `Location` are never sent, and no `Referer` is added.
/// - Every redirect counts, loops too. One more than the limit is `tooManyRedirects`.
///
/// Other answers of class 3 (300, 304, 305, 306), and those without a `Location`, are delivered as they are.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.redirectPolicy = .follow(upTo: 3, sensitiveHeaders: ["X-Api-Key"]) { hop in
///         hop.host.hasSuffix(".example.com") ? .follow : .refuse
///     }
public struct RedirectPolicy: Sendable {
    /// How many redirects of one run are followed at most. `nil`: none is, the answer is delivered.
    public var limit: Int?

    /// Follows from https to http, without the secrets. The default is `false`.
    public var allowsDowngrade: Bool

    /// Names of header fields that are dropped like `Authorization` when the origin changes. The default is none.
    ///
    /// In the configuration's policy they are secret in every way, like ``NetworkConfiguration/sensitiveHeaders``. In a
    /// request's own they are so for its runs: in redirects, the log, the curl command, and what tells one kept answer
    /// from another; which of the configuration's fields go to a foreign server is the configuration's to say.
    public var sensitiveHeaders: [String]

    /// Keeps a POST a POST on 301 and 302, as RFC 9110 would rather have it and browsers do not. The default is
    /// `false`.
    public var keepsMethodOn301And302: Bool

    /// Sends the fields of a ``TraceContext`` to other origins than that of the request, too. The default is `false`.
    public var keepsTraceContext = false

    /// A rule of one's own, like a list of hosts, asked about each redirect that the rest of the policy allows: it can
    /// narrow the policy, not widen it. Called on a thread of Ferry's, so it must not block. The default is `nil`.
    public var decide: (@Sendable (RedirectHop) -> RedirectDecision)?

    /// Follows up to that many redirects.
    public static func follow(
        upTo limit: Int = 10, allowsDowngrade: Bool = false, sensitiveHeaders: [String] = [],
        keepsMethodOn301And302: Bool = false, decide: (@Sendable (RedirectHop) -> RedirectDecision)? = nil
    ) -> RedirectPolicy {
        RedirectPolicy(
            limit: max(limit, 0), allowsDowngrade: allowsDowngrade, sensitiveHeaders: sensitiveHeaders,
            keepsMethodOn301And302: keepsMethodOn301And302, decide: decide)
    }

    /// Follows up to ten redirects; what an agent does unless it is told otherwise.
    public static var `default`: RedirectPolicy { .follow() }

    /// Follows none: an answer that points elsewhere is delivered like any other, and fails the status validation
    /// unless that accepts it.
    public static var none: RedirectPolicy {
        RedirectPolicy(
            limit: nil, allowsDowngrade: false, sensitiveHeaders: [], keepsMethodOn301And302: false, decide: nil)
    }
}

/// What a rule says to a redirect.
public enum RedirectDecision: Sendable, Hashable {
    /// Follow it.
    case follow
    /// Deliver the answer as it is.
    case deliver
    /// Fail with `redirectForbidden(.policy)`.
    case refuse
}

/// A redirect that was followed, without secrets: of the values of a query nothing is kept.
public struct Redirect: Sendable, Hashable, CustomStringConvertible {
    /// The status that asked for it.
    public let status: Int
    /// The URL that answered, redacted.
    public let source: String
    /// The URL that was asked next, redacted.
    public let target: String

    init(status: Int, source: String, target: String) {
        self.status = status
        self.source = Redaction.url(source)
        self.target = Redaction.url(target)
    }

    /// `302 http://a/x → http://b/y`
    public var description: String { "\(status) \(source) → \(target)" }
}

/// A redirect that is about to be followed, as ``RedirectPolicy/decide`` sees it.
public struct RedirectHop: Sendable, CustomStringConvertible {
    /// 1 for the first redirect of the run.
    public let number: Int
    /// The status that asked for it.
    public let status: Int
    /// The method it would be followed with.
    public let method: HTTPMethod
    /// The URL that answered.
    public let source: String
    /// The absolute URL that it points to, without user and password.
    public let target: String
    /// `https` or `http`, of the target.
    public let scheme: String
    /// The target's host as libcurl will connect to it: lower case, punycode, addresses spelled out (`127.1` is
    /// `127.0.0.1`), one of IPv6 in its brackets.
    public let host: String
    /// The target's port.
    public let port: Int
    /// Scheme, host and port are those of the URL that answered.
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
    /// The description's members: `dump` shows no query either.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["number": number, "redirect": Redirect(status: status, source: source, target: target)])
    }
}

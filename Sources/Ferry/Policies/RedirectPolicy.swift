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

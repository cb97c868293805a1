import FerryTransport

/// Which redirects are followed, and how (RFC 9110, 15.4).
///
/// Ferry follows redirects itself, one at a time, rather than leaving them to libcurl:
///
/// - 301 and 302 turn a POST into a GET without a body, as in browsers. 303 turns any method except HEAD into GET. 307
///   and 308 keep method and body; a body that can be sent only once is `bodyNotReplayable`.
/// - Without the body, the fields that describe it and the `Idempotency-Key` are dropped, too: this is another request.
/// - Only http and https are followed. A redirect from https to http is `redirectForbidden(downgrade)` unless
///   ``allowsDowngrade`` is set.
/// - When a redirect leaves the origin (scheme, host and port), `Authorization`, `Cookie`, `Proxy-Authorization` and
///   the ``sensitiveHeaders`` are dropped, and stay dropped even if a later redirect comes back. So are `Host`,
///   `Origin` and `Referer` of the request, which refer to the old origin. User and password in a `Location` are never
///   sent, and no `Referer` is added.
/// - Every redirect counts, also in a loop. One more than the limit is `tooManyRedirects`.
///
/// Other 3xx responses (300, 304, 305, 306), and those without a `Location`, are delivered.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.redirectPolicy = .follow(upTo: 3, sensitiveHeaders: ["X-Api-Key"]) { hop in
///         hop.host.hasSuffix(".example.com") ? .follow : .refuse
///     }
public struct RedirectPolicy: Sendable {
    /// The maximum number of redirects of one run. With `nil` no redirect is followed, and the response is delivered.
    /// A download may be redirected this often each time it requests a part of the file.
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

    /// Whether 301 and 302 keep the method POST, unlike browsers. RFC 9110, 15.4.2 and 15.4.3, allow both and recommend
    /// neither. The default is `false`.
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
    /// Fail with `redirectForbidden(policy)`.
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
    /// 1 for the first redirect of the run. Each time a download requests a part of the file, it begins at 1 again.
    public let number: Int
    /// The status of the redirect.
    public let status: Int
    /// The method of the next request.
    public let method: HTTPMethod
    /// The URL that sent the redirect, with its query values, which may be secret.
    public let source: String
    /// The absolute target URL, without user and password, but with its query values, which may be secret.
    public let target: String
    /// The scheme of the target, `https` or `http`.
    public let scheme: String
    /// The target's host in normalised form: lower case, punycode, complete addresses (`127.1` is `127.0.0.1`), and an
    /// IPv6 address in brackets.
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

/// The state machine for the redirects of one run: takes a response, and returns what to do. It does no networking.
struct RedirectMachine: Sendable {
    /// The request, as far as a redirect depends on it.
    struct Asked: Sendable {
        var url: String
        var method: HTTPMethod
        var hasBody = false
        /// The body can be created again.
        var isBodyReplayable = true
        /// An adapter or the authenticator created the body for this origin, so it may contain secrets.
        var isBodyBound = false
    }

    enum Action: Sendable {
        /// The response ends the run.
        case deliver
        case follow(Next)
        /// The run has failed. The message contains no secrets.
        case fail(RequestError.Code, message: String)
    }

    /// The next request.
    struct Next: Sendable {
        /// In a form that the core accepts, without user and password.
        let url: String
        let method: HTTPMethod
        /// Send no body, none of the fields that describe it, and not the key of the request that had it.
        let dropsBody: Bool
        /// Send no secrets.
        let dropsSecrets: Bool
        private let sensitive: [String]

        init(url: String, method: HTTPMethod, dropsBody: Bool, dropsSecrets: Bool, sensitive: [String]) {
            self.url = url
            self.method = method
            self.dropsBody = dropsBody
            self.dropsSecrets = dropsSecrets
            self.sensitive = sensitive
        }

        /// Whether a header field of the last request is dropped.
        func drops(_ field: String) -> Bool {
            if dropsBody && RedirectMachine.isAboutBody(field) { return true }
            guard dropsSecrets else { return false }
            return RedirectMachine.boundToOrigin.contains { equalNames($0, field) }
                || sensitive.contains { equalNames($0, field) }
        }
    }

    private let policy: RedirectPolicy
    private var dropsSecrets = false

    /// The redirects that were followed, in order.
    private(set) var history: [Redirect] = []
    /// How many of them belong to requests before the current one.
    private var earlier = 0

    init(_ policy: RedirectPolicy) { self.policy = policy }

    /// Whether the current request was not redirected yet.
    var isAtStart: Bool { history.count == earlier }

    /// The next request is sent where the first one was, with its secrets.
    mutating func beginAgain() { (earlier, dropsSecrets) = (history.count, false) }

    /// A response has arrived. `locations` are the raw values of all its `Location` fields, because not all servers
    /// send UTF-8.
    mutating func answered(status: Int, locations: [[UInt8]], to asked: Asked) -> Action {
        guard let limit = policy.limit, Self.isRedirect(status) else { return .deliver }
        guard let location = locations.first, !location.isEmpty else { return .deliver }
        guard history.count - earlier < limit else {
            return .fail(.tooManyRedirects, message: "more than \(limit) redirects")
        }
        // Two different targets: the destination must not depend on which one a parser takes.
        guard locations.allSatisfy({ $0 == location }) else {
            return .fail(
                .redirectForbidden(.invalidLocation), message: "the response has two different Location fields")
        }
        let source: URLParts
        let target: URLParts
        do throws(TransferFailure) {
            source = try URLParts(asked.url)
            target = try Self.target(of: location, from: source)
        } catch {
            let redacted = Self.shown(Redaction.url(String(decoding: location, as: UTF8.self), isBroken: true))
            return error.code == .unsupportedScheme
                ? .fail(.redirectForbidden(.scheme), message: "the redirect to \(redacted) is neither http nor https")
                : .fail(
                    .redirectForbidden(.invalidLocation), message: "the redirect target \(redacted) is not a valid URL")
        }
        let redacted = Self.shown(Redaction.url(target.text))
        if target.isLocal, !target.isSameOrigin(as: source) {
            return .fail(
                .redirectForbidden(.scheme), message: "redirects to a Unix socket are not followed: \(redacted)")
        }
        if source.isSecure, !target.isSecure, !policy.allowsDowngrade {
            return .fail(
                .redirectForbidden(.downgrade), message: "the redirect from https to http is not allowed: \(redacted)")
        }
        let (method, keepsBody) = follow(status, asked)
        let hop = RedirectHop(
            number: history.count - earlier + 1, status: status, method: method, source: source, target: target)
        switch policy.decide?(hop) ?? .follow {
        case .deliver: return .deliver
        case .refuse: return .fail(.redirectForbidden(.policy), message: "the redirect policy refused \(redacted)")
        case .follow: break
        }
        if asked.hasBody, keepsBody, !asked.isBodyReplayable {
            return .fail(
                .bodyNotReplayable,
                message: "the redirect to \(redacted) needs the body again, which can be read only once")
        }
        if asked.hasBody, keepsBody, asked.isBodyBound, dropsSecrets || !hop.isSameOrigin {
            return .fail(
                .redirectForbidden(.policy),
                message: "the redirect to \(redacted) would send it a body that was made for another server")
        }
        if !hop.isSameOrigin { dropsSecrets = true }
        history.append(Redirect(status: status, source: source.text, target: target.text))
        return .follow(
            Next(
                url: target.text, method: method, dropsBody: !keepsBody, dropsSecrets: dropsSecrets,
                sensitive: policy.sensitiveHeaders))
    }

    /// A server behind a Unix socket calls itself `localhost` in redirects to itself.
    private static func target(of location: [UInt8], from source: URLParts) throws(TransferFailure) -> URLParts {
        let target = try source.resolving(location)
        let own = source.isSecure ? "https://localhost/" : "http://localhost/"
        guard source.isLocal, target.text.hasPrefix(own) else { return target }
        return try source.resolving(Array(target.text.utf8.dropFirst(own.utf8.count - 1)))
    }

    /// As much of a server's text as should appear in a message.
    private static func shown(_ text: String) -> String { text.utf8.count <= 200 ? text : text.prefix(199) + "…" }

    /// The method of the next request, and whether it keeps the body.
    private func follow(_ status: Int, _ asked: Asked) -> (HTTPMethod, keepsBody: Bool) {
        switch status {
        case 301, 302:
            asked.method == .post && !policy.keepsMethodOn301And302 ? (.get, false) : (asked.method, true)
        case 303: (asked.method == .head ? .head : .get, false)
        default: (asked.method, true)
        }
    }

    static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// Fields that describe the body or how it is sent (RFC 9110, 15.4; RFC 9530), and the key of the request: the one
    /// without the body is another request.
    private static func isAboutBody(_ field: String) -> Bool {
        field.utf8.count >= 8 && equalNames(String(field.prefix(8)), "Content-")
            || ofBody.contains { equalNames($0, field) }
    }

    private static let ofBody = [
        "Transfer-Encoding", "Trailer", "Expect", "Digest", "Repr-Digest", "Last-Modified", "Idempotency-Key",
    ]

    /// Secrets, and fields that name the old origin: a `Host` set by the caller would reach another server under the
    /// first one's name.
    private static let boundToOrigin = ["Authorization", "Cookie", "Proxy-Authorization", "Host", "Origin", "Referer"]
}

extension RedirectMachine {
    /// The raw values of all `Location` fields of a response.
    static func locations(of result: TransferResult) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                guard name.count == 8, equalNames(String(decoding: name, as: UTF8.self), "Location") else { return }
                found.append(Array(value))
            }
        }
        return found
    }
}

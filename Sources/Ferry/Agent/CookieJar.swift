import FerryTransport

/// The cookies of an agent that keeps them (``NetworkConfiguration/keepsCookies``). Otherwise the jar is empty and
/// stays empty. Copies are the same jar. Use it from any thread.
///
/// The jar is bounded (RFC 6265, 6.1): it keeps at least 120 and at most 150 cookies per domain, and at least 3,000 and
/// at most 3,030 in total. Within a domain the oldest cookie is removed first. Among domains the one that was not used
/// for the longest time is removed first.
public struct CookieJar: Sendable {
    let core: AgentCore

    /// All cookies that have not expired, in no particular order.
    public var all: [Cookie] { core.transport.cookies.map(Cookie.init) }

    /// Adds a cookie. It replaces one with the same name, domain and path. It has no effect if the agent keeps no
    /// cookies, or if the cookie has a control character, a semicolon in its name or value, or `=` in its name.
    public func set(_ cookie: Cookie) { core.transport.setCookie(cookie.transfer) }

    /// Removes all cookies.
    public func removeAll() { core.transport.removeCookies() }
}

/// A cookie (RFC 6265).
public struct Cookie: Sendable, Hashable {
    /// The name.
    public var name: String
    /// The value as the server sent it.
    public var value: String
    /// The host that receives the cookie, without a leading dot.
    public var domain: String
    /// Whether subdomains receive the cookie too. The default is `false`.
    public var includesSubdomains: Bool
    /// The path prefix of the URLs that receive the cookie. The default is `/`.
    public var path: String
    /// Whether the cookie is sent over TLS only. The default is `false`.
    public var isSecure: Bool
    /// The `HttpOnly` attribute, which has no effect outside browsers. The default is `false`.
    public var isHTTPOnly: Bool
    /// The expiry time in seconds since 1970. With `nil`, the default, the cookie lives as long as the agent.
    public var expires: Int64?

    /// Creates a cookie.
    public init(
        name: String, value: String, domain: String, includesSubdomains: Bool = false, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, expires: Int64? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.includesSubdomains = includesSubdomains
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }
}

// A cookie is often a secret.
extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and path, without the value.
    public var description: String { "\(name)=*** for \(domain)\(path)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Name, domain and path, without the value.
    public var customMirror: Mirror { Mirror(self, children: ["name": name, "domain": domain, "path": path]) }
}

extension Cookie {
    fileprivate init(_ cookie: TransferCookie) {
        self.init(
            name: cookie.name, value: cookie.value, domain: cookie.domain,
            includesSubdomains: cookie.includesSubdomains, path: cookie.path, isSecure: cookie.isSecure,
            isHTTPOnly: cookie.isHTTPOnly, expires: cookie.expires)
    }

    fileprivate var transfer: TransferCookie {
        var made = TransferCookie(name: name, value: value, domain: domain)
        made.includesSubdomains = includesSubdomains
        made.path = path
        made.isSecure = isSecure
        made.isHTTPOnly = isHTTPOnly
        made.expires = expires
        return made
    }
}

extension NetworkAgent {
    /// The cookie jar of the agent.
    public var cookies: CookieJar { CookieJar(core: core) }
}

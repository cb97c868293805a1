import FerryTransport

/// The cookies of an agent that keeps them (``NetworkConfiguration/keepsCookies``); empty, and nothing stays in it,
/// when it does not. Copies are the same jar. Any thread.
///
/// The jar is bounded (RFC 6265, 6.1): of one domain it keeps 120 cookies at least and 150 at most, of all domains
/// 3,000 at least and 3,030 at most. What was set first goes first within a domain; among domains those that have been
/// asked for the longest time ago.
public struct CookieJar: Sendable {
    let core: AgentCore

    /// All of them, expired ones left out, in no order.
    public var all: [Cookie] { core.transport.cookies.map(Cookie.init) }

    /// Adds a cookie, in the place of one with its name, domain and path.
    public func set(_ cookie: Cookie) { core.transport.setCookie(cookie.transfer) }

    /// Forgets all.
    public func removeAll() { core.transport.removeCookies() }
}

/// A cookie (RFC 6265).
public struct Cookie: Sendable, Hashable {
    /// Its name.
    public var name: String
    /// Its value, as it came.
    public var value: String
    /// The host it goes to, without a leading dot.
    public var domain: String
    /// Whether it goes to the hosts below the domain too. The default is `false`.
    public var includesSubdomains: Bool
    /// The path below which it is sent. The default is `/`.
    public var path: String
    /// Whether it goes over TLS only. The default is `false`.
    public var isSecure: Bool
    /// Whether scripts of a browser would not see it; of no meaning here. The default is `false`.
    public var isHTTPOnly: Bool
    /// When it ends, in seconds since 1970; `nil` = with the agent. The default is `nil`.
    public var expires: Int64?

    /// A cookie of its parts.
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

// A cookie is a secret as often as not.
extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and path; never the value.
    public var description: String { "\(name)=*** for \(domain)\(path)" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Without the value.
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
    /// The agent's cookies.
    public var cookies: CookieJar { CookieJar(core: core) }
}

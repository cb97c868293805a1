/// Through which proxy an agent's requests go. None, unless it is said: the environment is not looked at by itself.
///
/// Over an HTTP proxy https goes through a tunnel (CONNECT), http is asked of the proxy itself. A credential is sent to
/// the proxy alone, never to the server behind it.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.proxy = .http("proxy.example.com", port: 3128).except("localhost", ".internal", "10.0.0.0/8")
///     configuration.proxy = .environment                     // HTTPS_PROXY and the like
///     configuration.proxy = .schemes(http: .none, https: .url("socks5h://kim:secret@gate:1080"))
///
/// What is no proxy, a URL that cannot be read say, fails each run that would go through it, before anything is sent.
public struct ProxyConfiguration: Sendable, Hashable {
    /// What is done with one scheme's requests.
    private struct Side: Sendable, Hashable {
        var route: ProxyRoute?
        var fault: ProxyConfigurationFault?
        var exceptions = ProxyExceptions()

        var isNone: Bool { route == nil && fault == nil }

        init() {}

        init(_ make: () throws(ProxyConfigurationFault) -> ProxyRoute) {
            do throws(ProxyConfigurationFault) { route = try make() } catch { fault = error }
        }
    }

    private var http: Side
    private var https: Side

    private init(_ both: Side) { (http, https) = (both, both) }

    /// Who looks a server's name up.
    public enum NameResolution: Sendable, Hashable, CaseIterable {
        /// The proxy does: names it alone knows work, and none is asked for here.
        case remote
        /// It is looked up here, and the proxy gets an address.
        case local
    }

    /// No proxy. The default.
    public static var none: ProxyConfiguration { ProxyConfiguration(Side()) }

    /// An HTTP proxy (RFC 9110, 3.7 and 9.3.6), for all requests.
    public static func http(_ host: String, port: Int, credential: Credential? = nil) -> ProxyConfiguration {
        ProxyConfiguration(
            Side { () throws(ProxyConfigurationFault) in
                try ProxyRoute(.http, host: host, port: port, credential: credential)
            })
    }

    /// A SOCKS proxy of version 5 (RFC 1928, RFC 1929), for all requests.
    public static func socks5(
        _ host: String, port: Int = 1080, resolvesNames: NameResolution = .remote, credential: Credential? = nil
    ) -> ProxyConfiguration {
        let kind: ProxyRoute.Kind = resolvesNames == .remote ? .socks5h : .socks5
        return ProxyConfiguration(
            Side { () throws(ProxyConfigurationFault) in
                try ProxyRoute(kind, host: host, port: port, credential: credential)
            })
    }

    /// A proxy as a URL: `http://user:password@proxy:3128`, `socks5://…` (names are looked up here) or `socks5h://…`
    /// (by the proxy). Without a scheme it is http; without a port 80, of SOCKS 1080. User and password are
    /// percent-encoded.
    public static func url(_ text: String) -> ProxyConfiguration {
        ProxyConfiguration(Side { () throws(ProxyConfigurationFault) in try ProxyRoute(url: text) })
    }

    /// One for requests to http, another for those to https.
    public static func schemes(
        http: ProxyConfiguration = .none, https: ProxyConfiguration = .none
    ) -> ProxyConfiguration {
        var made = http
        made.https = https.https
        return made
    }

    /// Likewise, with hosts that are connected to without it, added to those named before:
    ///
    /// - `example.com` and `.example.com`: that host and all below it. `*`: all hosts.
    /// - `10.0.0.1`, `::1`, `[::1]`: an address, as it stands in the URL; names are not looked up for this.
    /// - `10.0.0.0/8`, `fd00::/8`: all addresses of that network.
    /// - Any of them but a network with a port, like `example.com:8080`: at that port alone.
    public func except(_ hosts: String...) -> ProxyConfiguration { except(hosts) }

    /// Likewise.
    public func except(_ hosts: [String]) -> ProxyConfiguration {
        adding(hosts) { ProxyConfigurationFault("this is not an exception to a proxy: \(Redaction.url($0))") }
    }

    /// Adds exceptions; what makes no sense is nothing where it is no fault.
    func adding(_ hosts: [String], fault: (String) -> ProxyConfigurationFault?) -> ProxyConfiguration {
        var made = self
        for host in hosts {
            if made.http.exceptions.add(host), made.https.exceptions.add(host) { continue }
            guard let fault = fault(host) else { continue }
            made.http.fault = made.http.fault ?? fault
            made.https.fault = made.https.fault ?? fault
        }
        return made
    }

    /// Nothing goes through a proxy: nobody needs to be asked.
    var isNone: Bool { http.isNone && https.isNone }

    /// The proxy for a request; `nil` for none. `host` is what libcurl's parser makes of it (`URLParts`).
    func route(isSecure: Bool, host: String, port: UInt16) throws(ProxyConfigurationFault) -> ProxyRoute? {
        let side = isSecure ? https : http
        if side.isNone || side.exceptions.contains(host: host, port: port) { return nil }
        if let fault = side.fault { throw fault }
        return side.route
    }
}

extension ProxyConfiguration: CustomStringConvertible {
    /// `http: http://proxy:3128, https: none`, without credentials.
    public var description: String {
        func text(_ side: Side) -> String {
            if side.fault != nil { return "invalid" }
            return side.route?.description ?? "none"
        }
        return "http: \(text(http)), https: \(text(https))"
    }
}

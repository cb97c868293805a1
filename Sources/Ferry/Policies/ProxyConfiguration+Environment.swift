import FoundationEssentials

extension ProxyConfiguration {
    /// What the environment of this process says now; see ``environment(_:)``. It is read once, here.
    public static var environment: ProxyConfiguration { environment(ProcessInfo.processInfo.environment) }

    /// What these variables say: `http_proxy`, `https_proxy`, and `all_proxy` for whatever the other two leave open, as
    /// URLs like those of ``url(_:)``; `no_proxy`, parted by commas or blanks, names the exceptions of
    /// `except(_:)`. Each may be written in capitals; lower case wins. Empty ones are none.
    ///
    /// `HTTP_PROXY` in capitals is ignored where `REQUEST_METHOD` is set: in a CGI program that variable comes from a
    /// client's `Proxy` header (CVE-2016-5385). An exception that makes no sense is ignored, a proxy that makes none
    /// fails the runs that need it.
    public static func environment(_ variables: [String: String]) -> ProxyConfiguration {
        func value(_ name: String) -> String? {
            let isForged = name == "http_proxy" && variables["REQUEST_METHOD"] != nil
            for name in isForged ? [name] : [name, name.uppercased()] {
                if let value = variables[name], !value.isEmpty { return value }
            }
            return nil
        }
        let all = value("all_proxy")
        let made = schemes(
            http: (value("http_proxy") ?? all).map(url) ?? .none,
            https: (value("https_proxy") ?? all).map(url) ?? .none)
        let exceptions = (value("no_proxy") ?? "").split { $0 == "," || $0.isWhitespace }
        return made.adding(exceptions.map(String.init)) { _ in nil }
    }
}

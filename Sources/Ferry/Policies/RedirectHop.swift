import FerryTransport

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

import Ferry
import FerryTesting

/// Words that must never be in an error's text: the secrets of probes and of the scripts' responses are made of them.
enum Canary {
    static let authorization = "Bearer canary-authorization"
    static let cookie = "session=canary-cookie"
    static let proxy = "Basic canary-proxy"
    static let userInfo = "canary-user:canary-password@"
    static let query = "token=canary-token"
    /// In a field of a response.
    static let setCookie = "Set-Cookie: id=canary-set-cookie\r\n"
    static let body = "canary-body"

    /// In plain text, and in the form of Basic.
    static let words = ["canary", "Y2FuYXJ5"]
}

extension Request where Self == HTTPRequest<Response> {
    /// The request of a case: secrets in its header fields, its user and its query.
    static func probe(_ path: String = "") -> Self { probe(.get, path) }

    static func probe(_ method: HTTPMethod, _ path: String = "") -> Self {
        var probe = HTTPRequest(method, path)
        probe.headers = [
            "Authorization": Canary.authorization, "Cookie": Canary.cookie, "Proxy-Authorization": Canary.proxy,
        ]
        probe.cachePolicy = .none
        return probe
    }
}

/// The head of a response with a secret in it.
func head(_ status: String = "200 OK", _ fields: String = "") -> String {
    "HTTP/1.1 \(status)\r\n" + Canary.setCookie + fields + "\r\n"
}

/// A whole response with a length.
func answer(_ body: String, _ fields: String = "") -> String {
    head("200 OK", fields + "Content-Length: \(body.utf8.count)\r\n") + body
}

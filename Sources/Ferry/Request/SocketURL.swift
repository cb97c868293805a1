/// A URL of a Unix socket, `http+unix://%2Frun%2Fdocker.sock/v1/info`, in its two parts.
struct SocketURL {
    /// `/run/docker.sock`
    let path: String
    /// `http://localhost/v1/info`
    let url: String

    /// `nil` for any other URL.
    init?(_ url: String) {
        guard let mark = url.firstRange(of: "+unix://"), ["http", "https"].contains(url[..<mark.lowerBound]) else {
            return nil
        }
        let authority = url[mark.upperBound...].prefix { !"/?#".contains($0) }
        path = String(decoding: PercentEncoding.decoded(authority.utf8), as: UTF8.self)
        self.url = url[..<mark.lowerBound] + "://localhost" + url[authority.endIndex...]
    }
}

/// The options of curl that are understood; curl(1) says what they do.
struct CurlOption: Sendable {
    enum Meaning: Sendable {
        case method, header, data, dataRaw, dataBinary, dataURLEncoded, json, query, head, user, digest, bearer
        case userAgent, referer, cookie, insecure, compressed, location, maxRedirects, maxTime, connectTimeout, proxy
        case noProxy, proxyUser, authorities, certificate, key, keyPassword, http2, http2PriorKnowledge, tls13, retries
        case form, formString, url
        /// It changes only what curl shows, or what is so anyway.
        case nothing
    }

    let names: [String]
    let takesValue: Bool
    let meaning: Meaning

    private init(_ meaning: Meaning, _ names: String..., value: Bool = false) {
        self.meaning = meaning
        self.names = names
        takesValue = value
    }

    /// With its dashes.
    static func named(_ name: String) -> CurlOption? { all.first { $0.names.contains(name) } }

    private static let all = [
        CurlOption(.method, "-X", "--request", value: true),
        CurlOption(.header, "-H", "--header", value: true),
        CurlOption(.data, "-d", "--data", "--data-ascii", value: true),
        CurlOption(.dataRaw, "--data-raw", value: true),
        CurlOption(.dataBinary, "--data-binary", value: true),
        CurlOption(.dataURLEncoded, "--data-urlencode", value: true),
        CurlOption(.json, "--json", value: true),
        CurlOption(.form, "-F", "--form", value: true),
        CurlOption(.formString, "--form-string", value: true),
        CurlOption(.query, "-G", "--get"),
        CurlOption(.head, "-I", "--head"),
        CurlOption(.user, "-u", "--user", value: true),
        CurlOption(.digest, "--digest"),
        CurlOption(.bearer, "--oauth2-bearer", value: true),
        CurlOption(.userAgent, "-A", "--user-agent", value: true),
        CurlOption(.referer, "-e", "--referer", value: true),
        CurlOption(.cookie, "-b", "--cookie", value: true),
        CurlOption(.insecure, "-k", "--insecure"),
        CurlOption(.compressed, "--compressed"),
        CurlOption(.location, "-L", "--location"),
        CurlOption(.maxRedirects, "--max-redirs", value: true),
        CurlOption(.maxTime, "-m", "--max-time", value: true),
        CurlOption(.connectTimeout, "--connect-timeout", value: true),
        CurlOption(.proxy, "-x", "--proxy", value: true),
        CurlOption(.proxyUser, "-U", "--proxy-user", value: true),
        CurlOption(.noProxy, "--noproxy", value: true),
        CurlOption(.authorities, "--cacert", value: true),
        CurlOption(.certificate, "-E", "--cert", value: true),
        CurlOption(.key, "--key", value: true),
        CurlOption(.keyPassword, "--pass", value: true),
        CurlOption(.http2, "--http2"),
        CurlOption(.http2PriorKnowledge, "--http2-prior-knowledge"),
        CurlOption(.tls13, "--tlsv1.3"),
        CurlOption(.retries, "--retry", value: true),
        CurlOption(.url, "--url", value: true),
        CurlOption(
            .nothing, "-s", "--silent", "-S", "--show-error", "-v", "--verbose", "-i", "--include", "-f", "--fail",
            "--fail-with-body", "-g", "--globoff", "-N", "--no-buffer", "-#", "--progress-bar", "--no-progress-meter",
            "--path-as-is", "--http1.1", "--tlsv1.2", "--basic", "-q", "--disable", "--no-keepalive", "-O",
            "--remote-name", "--tcp-nodelay"),
        CurlOption(.nothing, "-o", "--output", "-w", "--write-out", "-D", "--dump-header", "--stderr", value: true),
    ]
}

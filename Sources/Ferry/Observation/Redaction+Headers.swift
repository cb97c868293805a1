extension Redaction {
    /// What stands in the place of a secret.
    static let mark = "***"

    /// The fields in their order, with the values of secret ones replaced.
    static func headers(_ headers: Headers, sensitive: [String] = []) -> Headers {
        Headers(
            headers.map { field in
                .init(name: field.name, value: header(field.name, field.value, sensitive: sensitive))
            })
    }

    /// A value as it may be shown. Of `Location` and its like, which are URLs, only what is secret in them goes.
    static func header(_ name: String, _ value: String, sensitive: [String] = []) -> String {
        if isSensitive(name, declared: sensitive) { return mark }
        if locations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: value.hasPrefix("//")) }
        // These hold more than a URL, perhaps several: all up to the last `@` goes.
        if listsOfLocations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: true) }
        return value
    }

    /// Whether the values of fields of this name are secrets: those that HTTP defines so, those that were declared, and
    /// those whose name says it. Better one value too few in a log than one too many.
    static func isSensitive(_ name: String, declared: [String] = []) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        let name = String(decoding: name.utf8.map(lowercased), as: UTF8.self)
        if parts.contains(where: { name.contains($0) }) { return true }
        return name.split(whereSeparator: { $0 == "-" || $0 == "_" || $0 == "." }).contains {
            words.contains(String($0))
        }
    }

    private static let locations = ["Location", "Content-Location", "Referer", "Origin"]
    private static let listsOfLocations = ["Link", "Refresh"]

    /// `Proxy-Authorization`, `Set-Cookie`, `X-Api-Key`, `X-Auth-Token` and many more contain one of them.
    private static let parts = [
        "auth", "cookie", "token", "secret", "key", "passw", "passphrase", "session", "credential", "signature",
        "proxy-", "assertion", "csrf", "xsrf", "bearer",
    ]
    /// Too short to be looked for within other words.
    private static let words: Set<String> = ["sid", "jwt", "otp", "pin", "pwd", "pass", "sig", "cert", "saml", "nonce"]
}

/// The supported options of curl; see curl(1).
struct CurlOption: Sendable {
    enum Meaning: Sendable {
        case method, header, data, dataRaw, dataBinary, dataURLEncoded, json, query, head, user, digest, bearer
        case userAgent, referer, cookie, insecure, compressed, location, maxRedirects, maxTime, connectTimeout, proxy
        case noProxy, proxyUser, authorities, certificate, key, keyPassword, http2, http2PriorKnowledge, tls13, retries
        case form, formString, url
        /// It changes only curl's output, or is the default anyway.
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

    /// The option with this name, including its dashes.
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

/// One part of a form, as with `-F` and `--form-string` of curl.
struct CurlFormPart: Sendable, Equatable {
    enum Content: Sendable, Equatable {
        case text(String)
        /// A path.
        case file(String)
    }

    var name: String
    var content: Content
    /// `nil` for the file's own name, and for text without one.
    var filename: String?
    var type: String?

    /// `name=value`, used literally.
    init(string text: String) throws(UsageError) {
        let (name, value) = try Self.split(text, "--form-string")
        self.name = name
        content = .text(value)
    }

    /// `name=text`, `name=@file` or `name=<file`, optionally followed by `;type=` and `;filename=`. Nested parts,
    /// several files in one part, and other suffixes of curl are refused.
    init(_ text: String, reading: (String) throws -> [UInt8]) throws {
        let (name, value) = try Self.split(text, "-F")
        self.name = name
        guard !value.hasPrefix("("), !(name.isEmpty && value.hasPrefix(")")) else {
            throw UsageError("-F '\(text)': parts within a part are not supported")
        }
        let sign = value.first.flatMap { "@<".contains($0) ? $0 : nil }
        var words = try Self.words(sign == nil ? value[...] : value.dropFirst(), text)[...]
        let first = words.removeFirst()
        if sign != nil, first == "-" { throw UsageError("-F '\(text)': standard input as a part is not supported") }
        if sign == "@", first.contains(",") {
            throw UsageError("-F '\(text)': several files in one part are not supported")
        }
        switch sign {
        case "@": content = .file(first)
        case "<":
            guard let read = String(validating: try reading(first), as: UTF8.self) else {
                throw UsageError("-F '\(text)': the file is not text")
            }
            content = .text(read)
        default: content = .text(first)
        }
        for word in words {
            if word.hasPrefix("type=") {
                type = String(word.dropFirst(5))
            } else if word.hasPrefix("filename=") {
                filename = String(word.dropFirst(9))
            } else {
                throw UsageError("-F '\(text)': ';\(word)' is not supported")
            }
        }
        // Like curl: text from a file has no file name, and a file name determines the type.
        if sign == "<" { filename = nil }
        if type == nil, sign == "@" || filename != nil { type = Self.type(of: filename ?? first) }
    }

    private static func split(_ text: String, _ option: String) throws(UsageError) -> (name: String, value: String) {
        guard let (name, value) = text.parted(at: "=") else {
            throw UsageError("\(option) must be 'name=content', not '\(text)'")
        }
        return (name, value)
    }

    /// The parts between semicolons. In double quotes a semicolon does not separate, and a backslash escapes the next
    /// character.
    private static func words(_ text: Substring, _ whole: String) throws(UsageError) -> [String] {
        var words = [""]
        var isQuoted = false
        var rest = text
        while let character = rest.popFirst() {
            switch character {
            case "\"" where isQuoted || words[words.count - 1].isEmpty || words[words.count - 1].hasSuffix("="):
                isQuoted.toggle()
            case "\\" where isQuoted:
                if let next = rest.popFirst() { words[words.count - 1].append(next) }
            case ";" where !isQuoted: words.append("")
            default: words[words.count - 1].append(character)
            }
        }
        if isQuoted { throw UsageError("-F '\(whole)': unterminated quote") }
        return words
    }

    /// The content type that curl derives from a file extension.
    private static func type(of path: String) -> String {
        let types = [
            ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png",
            ".svg": "image/svg+xml", ".txt": "text/plain", ".htm": "text/html", ".html": "text/html",
            ".pdf": "application/pdf", ".xml": "application/xml",
        ]
        let path = path.lowercased()
        return types.first { path.hasSuffix($0.key) }?.value ?? "application/octet-stream"
    }
}

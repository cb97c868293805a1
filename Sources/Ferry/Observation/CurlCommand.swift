/// An exchange as a curl command line. By default its text contains no secrets.
struct CurlCommand: Sendable {
    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// A file, or only a range of its bytes.
        case file(path: String, range: Range<UInt64>? = nil)
        /// Read by the command from standard input.
        case input
        case multipart([Part])
    }

    struct Part: Sendable {
        enum Content: Sendable {
            case bytes([UInt8])
            case file(path: String)
            case input
        }

        /// curl does not accept a name with an equals sign, which becomes `%3D`.
        var name: String
        var content: Content
        var fileName: String?
        var contentType: String?
        /// Additional fields, which curl supports since 7.83.
        var headers = Headers()
    }

    enum HTTPVersion: String, Sendable {
        case http11 = "--http1.1"
        case http2 = "--http2"
        /// Without an upgrade, over plain TCP.
        case http2PriorKnowledge = "--http2-prior-knowledge"
    }

    struct Options: Sendable {
        var httpVersion: HTTPVersion?
        var connectTimeout: Duration?
        var totalTimeout: Duration?
        var proxy: String?
        var unixSocket: String?
        /// `HOST:PORT:ADDRESS,…`
        var overrides: [String] = []
        var authorityFile: String?
        var clientCertificate: String?
        var clientKey: String?
        /// `sha256//…`
        var pinnedKeys: [String] = []
        var isInsecure = false
        var requiresTLS13 = false
        /// Credentials for a challenge of the server.
        var digest: Credential?
        /// Whether the body is decoded; curl then sets `Accept-Encoding`.
        var isCompressed = false
        /// Redirects are followed if this is above 0.
        var maxRedirects = 0
    }

    var method: HTTPMethod
    var url: String
    /// All header fields, except those for framing, and those that `isCompressed` and a multipart body add.
    var headers: Headers
    var body: Body
    var options: Options
    /// The names of secret header fields, in addition to the well-known ones.
    var sensitiveHeaders: [String]

    init(
        method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: Body = .none,
        options: Options = Options(), sensitiveHeaders: [String] = []
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.options = options
        self.sensitiveHeaders = sensitiveHeaders
    }
}

// All conversions to text are defined here, so that none of them shows a secret.
extension CurlCommand: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { text() }
    var debugDescription: String { text() }
    var customMirror: Mirror { Mirror(self, children: ["text": text()]) }
}

extension CurlCommand {
    /// The command as one line for bash. By default it is redacted: values of secret header fields, of the query and of
    /// forms, and the body are `***`. Otherwise it makes exactly the same exchange.
    func text(redacted: Bool = true) -> String {
        var words = ["curl"]
        var source: String?
        appendMethod(to: &words)
        let shownURL = redacted ? Redaction.url(url) : url
        // Otherwise curl interprets these as lists and ranges, and removes dot segments itself.
        if url.utf8.contains(where: { $0 == 0x5B || $0 == 0x5D || $0 == 0x7B || $0 == 0x7D }) {
            words.append("--globoff")
        }
        if url.contains("/.") { words.append("--path-as-is") }
        appendOptions(to: &words, redacted)
        appendHeaders(to: &words, redacted)
        switch body {
        case .none: break
        case .bytes(let bytes): appendBytes(bytes, to: &words, &source, redacted)
        case .file(let path, nil): words += ["--data-binary", ShellText.word("@" + Self.filePath(path))]
        case .file(let path, let range?):
            let file = ShellText.word(Self.filePath(path))
            source = "tail -c +\(range.lowerBound + 1) -- \(file) | head -c \(range.count)"
            words += ["--data-binary", "@-"]
        case .input: words += ["--upload-file", "-"]
        case .multipart(let parts): for part in parts { appendPart(part, to: &words, redacted) }
        }
        words.append(ShellText.quoted(shownURL))
        let command = words.joined(separator: " ")
        return source.map { "\($0) | \(command)" } ?? command
    }

    private func appendMethod(to words: inout [String]) {
        let implied: HTTPMethod =
            switch body {
            case .none: .get
            case .input: .put
            case .bytes, .file, .multipart: .post
            }
        if method == implied { return }
        // With `-X HEAD` curl would wait for a body.
        if method == .head, case .none = body { return words.append("--head") }
        words += ["-X", ShellText.word(method.rawValue)]
    }

    private func appendOptions(to words: inout [String], _ redacted: Bool) {
        if let version = options.httpVersion { words.append(version.rawValue) }
        if let timeout = options.connectTimeout { words += ["--connect-timeout", Self.seconds(timeout)] }
        if let timeout = options.totalTimeout { words += ["--max-time", Self.seconds(timeout)] }
        if let proxy = options.proxy {
            // The text was not parsed: everything before the last `@` may be a password.
            words += ["--proxy", ShellText.quoted(redacted ? Redaction.url(proxy, isBroken: true) : proxy)]
        }
        // The proxies of the shell's environment would make it another exchange.
        if !redacted { words += ["--noproxy", options.proxy == nil ? "'*'" : "''"] }
        if let path = options.unixSocket { words += ["--unix-socket", ShellText.word(path)] }
        for override in options.overrides { words += ["--resolve", ShellText.quoted(override)] }
        if let file = options.authorityFile { words += ["--cacert", ShellText.word(file)] }
        if let file = options.clientCertificate { words += ["--cert", ShellText.word(Self.certificate(file))] }
        if let file = options.clientKey { words += ["--key", ShellText.word(file)] }
        if !options.pinnedKeys.isEmpty {
            words += ["--pinnedpubkey", ShellText.quoted(options.pinnedKeys.joined(separator: ";"))]
        }
        if options.isInsecure { words.append("--insecure") }
        if options.requiresTLS13 { words.append("--tlsv1.3") }
        if let digest = options.digest {
            let user = redacted ? Redaction.mark : "\(digest.user):\(digest.password)"
            words += ["--digest", "--user", ShellText.quoted(user)]
        }
        if options.isCompressed { words.append("--compressed") }
        if options.maxRedirects > 0 { words += ["--location", "--max-redirs", String(options.maxRedirects)] }
    }

    /// Fields that curl would add itself are removed unless they are wanted, by a name followed by a colon only.
    private func appendHeaders(to words: inout [String], _ redacted: Bool) {
        for field in headers {
            let isFraming = equalNames(field.name, "Content-Length") || equalNames(field.name, "Transfer-Encoding")
            if isFraming || (options.isCompressed && equalNames(field.name, "Accept-Encoding")) { continue }
            // curl adds the boundary that it has chosen.
            if case .multipart = body, equalNames(field.name, "Content-Type") { continue }
            let value = redacted ? Redaction.header(field.name, field.value, sensitive: sensitiveHeaders) : field.value
            // curl sends a field with an empty value only with this sign.
            words += ["-H", ShellText.quoted(value.isEmpty ? field.name + ";" : "\(field.name): \(value)")]
        }
        for name in ["User-Agent", "Accept"] where !headers.contains(name) { words += ["-H", "'\(name):'"] }
        if hasDataType, !headers.contains("Content-Type") { words += ["-H", "'Content-Type:'"] }
        if mayExpect, !headers.contains("Expect") { words += ["-H", "'Expect:'"] }
    }

    /// curl sends data as a form unless there is a content type.
    private var hasDataType: Bool {
        switch body {
        case .bytes, .file: true
        case .none, .input, .multipart: false
        }
    }

    /// curl sends `Expect` before more than 1 MiB.
    private var mayExpect: Bool {
        switch body {
        case .none: false
        case .bytes(let bytes): bytes.count > 1 << 20
        case .file, .input, .multipart: true
        }
    }

    private func appendBytes(_ bytes: [UInt8], to words: inout [String], _ source: inout String?, _ redacted: Bool) {
        if redacted, !bytes.isEmpty {
            words += ["--data-raw", ShellText.quoted("\(Redaction.mark) (\(bytes.count) bytes)")]
        } else if bytes.contains(0) || bytes.count > Self.longestWord {
            source = ShellText.printing(bytes)
            words += ["--data-binary", "@-"]
        } else {
            // Not --data-binary, which interprets a leading @ as a file.
            words += ["--data-raw", ShellText.quoted(bytes)]
        }
    }

    /// The limit of Linux is 128 KiB per argument, in the bytes that the shell has read.
    private static let longestWord = 100_000

    private func appendPart(_ part: Part, to words: inout [String], _ redacted: Bool) {
        let name = part.name.unicodeScalars.map { $0 == "=" ? "%3D" : String($0) }.joined()
        var suffix = ""
        if let fileName = part.fileName { suffix += ";filename=" + Self.formQuoted(fileName) }
        if let type = part.contentType { suffix += ";type=" + type }
        for field in part.headers {
            let value = redacted ? Redaction.header(field.name, field.value, sensitive: sensitiveHeaders) : field.value
            suffix += ";headers=" + Self.formQuoted("\(field.name): \(value)")
        }
        switch part.content {
        case .file(let path):
            words += ["-F", ShellText.quoted("\(name)=@\(Self.formQuoted(Self.filePath(path)))\(suffix)")]
        case .input: words += ["-F", ShellText.quoted("\(name)=@-\(suffix)")]
        case .bytes(let bytes):
            if redacted {
                words += ["-F", ShellText.quoted("\(name)=\(Redaction.mark)\(suffix)")]
            } else if bytes.contains(0) || bytes.count > Self.longestWord {
                // A pipe, as a file with a name of its own or as plain content.
                let sign = part.fileName == nil ? "<" : "@"
                let pipe = "<(\(ShellText.printing(bytes)))"
                words += [
                    "-F", ShellText.quoted(name + "=" + sign) + pipe + (suffix.isEmpty ? "" : ShellText.quoted(suffix)),
                ]
            } else if suffix.isEmpty {
                words += ["--form-string", ShellText.quoted(Array("\(name)=".utf8) + bytes)]
            } else {
                words += ["-F", ShellText.quoted(Array("\(name)=".utf8) + Self.formQuoted(bytes) + Array(suffix.utf8))]
            }
        }
    }

    /// The value in curl's form syntax: in double quotes, with a backslash before double quotes and backslashes.
    private static func formQuoted(_ text: String) -> String {
        String(decoding: formQuoted(Array(text.utf8)), as: UTF8.self)
    }

    private static func formQuoted(_ bytes: [UInt8]) -> [UInt8] {
        var made: [UInt8] = [0x22]
        for byte in bytes {
            if byte == 0x22 || byte == 0x5C { made.append(0x5C) }
            made.append(byte)
        }
        return made + [0x22]
    }

    /// curl takes the text after a colon for a password, unless there is a backslash before the colon.
    private static func certificate(_ path: String) -> [UInt8] {
        path.utf8.flatMap { $0 == 0x3A || $0 == 0x5C ? [0x5C, $0] : [$0] }
    }

    /// A single dash would be standard input.
    private static func filePath(_ path: String) -> String { path == "-" ? "./-" : path }

    private static func seconds(_ duration: Duration) -> String {
        let milliseconds = max(duration.microseconds, 0) / 1000
        let fraction = String(milliseconds % 1000)
        if fraction == "0" { return String(milliseconds / 1000) }
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}

import FerryTransport

extension NetworkAgent {
    /// The exchange that a request describes, as a curl command line for bash.
    ///
    ///     print(try agent.curlCommand(for: Export()))     // curl -H 'Authorization: ***' … 'https://h/export?key=***'
    ///
    /// By default it is redacted: user and password, the values of secret header fields, of the query and of forms, and
    /// the body are `***`. With `redacted: false` it makes exactly the same exchange, and contains all secrets. The
    /// proxies of the shell's environment then do not apply (`--noproxy`).
    ///
    /// The command is built like a run, from the request and the configuration, with body, proxy, TLS settings, connect
    /// and total timeouts, and the number of redirects. Nothing is sent, and no file is opened: a file in the body is
    /// named by its path, and a stream becomes standard input. What adapters, an authenticator or the cookie jar would
    /// add is missing.
    ///
    /// Throws the error with which a run of the request would fail before anything is sent, like `invalidURL`.
    public func curlCommand<R: Request>(for request: R, redacted: Bool = true) throws(RequestError) -> String {
        let outgoing = try core.builder.snapshot(of: request, at: core.builder.servers).outgoing
        var headers = outgoing.headers
        if let agent = configuration.userAgent, !headers.contains("User-Agent") { headers.append("User-Agent", agent) }
        var options = try CurlCommand.Options(request, outgoing, configuration)
        var url = outgoing.url
        if let socket = SocketURL(url) { (options.unixSocket, url) = (socket.path, socket.url) }
        return CurlCommand(
            method: outgoing.method, url: url, headers: headers, body: try CurlCommand.Body(outgoing), options: options,
            sensitiveHeaders: core.builder.sensitiveHeaders(with: request.redirectPolicy)
        ).text(redacted: redacted)
    }
}

extension CurlCommand.Options {
    fileprivate init<R: Request>(
        _ request: R, _ outgoing: OutgoingRequest, _ configuration: NetworkConfiguration
    ) throws(RequestError) {
        self.init()
        let isSecure = HostKey.isSecure(outgoing.url) || outgoing.url.lowercased().hasPrefix("https+unix:")
        switch configuration.http2 {
        // Over TLS curl negotiates HTTP/2 by default.
        case .never: if isSecure { httpVersion = .http11 }
        case .negotiated: if isSecure { httpVersion = .http2 }
        case .priorKnowledge: httpVersion = .http2PriorKnowledge
        }
        let timeouts = request.timeouts ?? configuration.timeouts
        connectTimeout = timeouts.connect
        totalTimeout = timeouts.total
        proxy = try (request.proxy ?? configuration.proxy).route(for: outgoing.url)?.url
        unixSocket = configuration.unixSocket
        overrides = configuration.hostOverrides.sorted { $0.key < $1.key }
            .map { "\($0.key):\($0.value.joined(separator: ","))" }
        let encodings = request.acceptedEncodings ?? configuration.acceptedEncodings
        isCompressed = !encodings.isEmpty && !outgoing.headers.contains("Accept-Encoding")
        maxRedirects = (request.redirectPolicy ?? configuration.redirectPolicy).limit ?? 0
        if request.prebuiltRequest == nil, !outgoing.headers.contains("Authorization") {
            digest = request.authorization?.digest
        }
        if isSecure {
            authorityFile = configuration.tls.authorityFile
            clientCertificate = configuration.tls.clientCertificate?.certificateFile
            clientKey = configuration.tls.clientCertificate?.keyFile
            pinnedKeys = configuration.tls.pinnedKeys
            isInsecure = configuration.tls.verification == .none
            requiresTLS13 = configuration.tls.minimumVersion == .v13
        }
    }
}

extension CurlCommand.Body {
    fileprivate init(_ outgoing: OutgoingRequest) throws(RequestError) {
        switch outgoing.body?.content {
        case nil: self = .none
        case .data(let data): self = .bytes(Array(data))
        case .bytes(let bytes): self = .bytes(bytes)
        // The builder has converted these two to bytes.
        case .string(let text): self = .bytes(Array(text.utf8))
        case .json: self = .input
        // curl compresses nothing.
        case .pulled where outgoing.body?.coding != nil, .multipart where outgoing.body?.coding != nil: self = .input
        case .pulled(let body as FileBody): self = .file(path: body.path, range: body.range)
        case .pulled: self = .input
        case .multipart(let form):
            var parts: [CurlCommand.Part] = []
            do throws(BodyFault) {
                for part in form.parts { parts.append(try CurlCommand.Part(part)) }
            } catch {
                throw RequestError(error, url: outgoing.url)
            }
            self = .multipart(parts)
        }
    }
}

extension CurlCommand.Part {
    fileprivate init(_ part: Multipart.Part) throws(BodyFault) {
        self.init(
            name: part.name, content: .input, fileName: part.filename, contentType: part.contentType,
            headers: part.headers)
        switch part.body {
        case let file as FileBody: content = .file(path: file.path)
        case is StreamBody, is OnceBody: break
        default: content = .bytes(try part.body.makeSource().wholeInMemory)
        }
    }
}

extension ProxyRoute {
    /// The proxy as a URL that contains the credential.
    fileprivate var url: String {
        guard let credential else { return description }
        let (user, password) = (PercentEncoding.encoded(credential.user), PercentEncoding.encoded(credential.password))
        return "\(kind.rawValue)://\(user):\(password)@\(address)"
    }
}

/// Quotes words of a command line for bash, zsh and ksh, on one line and with visible characters only.
enum ShellText {
    /// One word: unquoted if the shell interprets nothing in it, else in single quotes, or as `$'…'` if it has
    /// invisible characters. A NUL byte cannot be part of a word and is omitted.
    static func word(_ text: String) -> String { word(Array(text.utf8)) }

    static func word(_ bytes: [UInt8]) -> String {
        if !bytes.isEmpty, bytes.allSatisfy(bare.contains) { return String(decoding: bytes, as: UTF8.self) }
        return quoted(bytes)
    }

    /// One word, always quoted, as is usual for header fields and URLs.
    static func quoted(_ text: String) -> String { quoted(Array(text.utf8)) }

    static func quoted(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self), text.unicodeScalars.allSatisfy(isVisible) {
            // By bytes: a quotation mark and a combining mark after it are one character.
            let words = bytes.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
            return "'" + String(decoding: Array(words.joined(separator: "'\\''".utf8)), as: UTF8.self) + "'"
        }
        var made = "$'"
        for piece in pieces(of: bytes) {
            switch piece {
            case .visible("'"), .visible("\\"): made += "\\" + piece.text
            // History expansion of an interactive shell.
            case .visible("!"): made += "\\041"
            case .visible: made += piece.text
            case .bytes([0x0A]): made += "\\n"
            case .bytes([0x0D]): made += "\\r"
            case .bytes([0x09]): made += "\\t"
            case .bytes(let bytes): for byte in bytes where byte != 0 { made += "\\" + octal(byte) }
            }
        }
        return made + "'"
    }

    /// A `printf '…'` that prints these bytes, including NUL. A dash at the beginning would be an option.
    static func printing(_ bytes: [UInt8]) -> String {
        var made = "printf '"
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case 0x2D where index == 0: made += "\\055"
            case 0x25: made += "%%"
            case 0x0A: made += "\\n"
            case 0x20...0x7E where byte != 0x27 && byte != 0x5C: made.unicodeScalars.append(UnicodeScalar(byte))
            default: made += "\\" + octal(byte)
            }
        }
        return made + "'"
    }

    private enum Piece {
        case visible(UnicodeScalar)
        case bytes([UInt8])

        var text: String { if case .visible(let scalar) = self { String(Character(scalar)) } else { "" } }
    }

    private static func pieces(of bytes: [UInt8]) -> [Piece] {
        var pieces: [Piece] = []
        var rest = bytes[...]
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            if let text = String(validating: rest.prefix(length), as: UTF8.self), let scalar = text.unicodeScalars.first
            {
                pieces.append(isVisible(scalar) ? .visible(scalar) : .bytes(Array(rest.prefix(length))))
                rest = rest.dropFirst(length)
            } else {
                pieces.append(.bytes([first]))
                rest = rest.dropFirst()
            }
        }
        return pieces
    }

    /// The only visible blank is the ordinary space.
    private static func isVisible(_ scalar: UnicodeScalar) -> Bool {
        !scalar.isInvisible && (scalar == " " || scalar.properties.generalCategory != .spaceSeparator)
    }

    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return String(repeating: "0", count: 3 - digits.count) + digits
    }

    private static let bare = ByteSet("-._/:@%+,0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

import FerryTransport

extension NetworkAgent {
    /// The exchange that a request describes, as a command line of curl for bash.
    ///
    ///     print(try agent.curlCommand(for: Export()))     // curl -H 'Authorization: ***' … 'https://h/export?key=***'
    ///
    /// Redacted, which is the default, it shows what is asked of whom: user and password, the values of secret header
    /// fields, of the query and of forms, and the body are `***`. With `redacted: false` it makes the very same
    /// exchange, secrets and all.
    ///
    /// It is built as a run would be, from the request and the configuration, with body, proxy, trust, connect and
    /// total timeouts, and the number of redirects. Nothing is sent, and no file is opened: one that is the body, or a
    /// part of it, stands there by its path, and a stream is what the command gets by standard input. What adapters, an
    /// authenticator or the cookie jar would add is not in it.
    ///
    /// Throws what a run of the request would fail with before anything is sent, like `invalidURL`.
    public func curlCommand<R: Request>(for request: R, redacted: Bool = true) throws(RequestError) -> String {
        let outgoing = try core.builder.snapshot(of: request, at: core.builder.servers).outgoing
        var headers = outgoing.headers
        if let agent = configuration.userAgent, !headers.contains("User-Agent") { headers.append("User-Agent", agent) }
        return CurlCommand(
            method: outgoing.method, url: outgoing.url, headers: headers, body: try CurlCommand.Body(outgoing),
            options: try CurlCommand.Options(request, outgoing, configuration),
            sensitiveHeaders: core.builder.sensitiveHeaders(of: request)
        ).text(redacted: redacted)
    }
}

extension CurlCommand.Options {
    fileprivate init<R: Request>(
        _ request: R, _ outgoing: OutgoingRequest, _ configuration: NetworkConfiguration
    ) throws(RequestError) {
        self.init()
        let isSecure = outgoing.url.hasPrefix("https:")
        switch configuration.http2 {
        // Over TLS curl asks for HTTP/2 by itself.
        case .never: if isSecure { httpVersion = .http11 }
        case .negotiated: if isSecure { httpVersion = .http2 }
        case .priorKnowledge: httpVersion = .http2PriorKnowledge
        }
        let timeouts = request.timeouts ?? configuration.timeouts
        connectTimeout = timeouts.connect
        totalTimeout = timeouts.total
        proxy = try (request.proxy ?? configuration.proxy).route(for: outgoing.url)?.url
        let encodings = request.acceptedEncodings ?? configuration.acceptedEncodings
        isCompressed = !encodings.isEmpty && !outgoing.headers.contains("Accept-Encoding")
        maxRedirects = (request.redirectPolicy ?? configuration.redirectPolicy).limit ?? 0
        if request.custom == nil, !outgoing.headers.contains("Authorization") {
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
        // The builder has made bytes of these two.
        case .string(let text): self = .bytes(Array(text.utf8))
        case .json: self = .input
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
    /// As a URL, with the credential in it.
    fileprivate var url: String {
        guard let credential else { return description }
        let (user, password) = (PercentEncoding.encoded(credential.user), PercentEncoding.encoded(credential.password))
        return "\(kind.rawValue)://\(user):\(password)@\(address)"
    }
}

internal import Ferry
internal import Glibc

/// The request of a load and the configuration of its agent.
struct BenchOrder: Sendable {
    /// The request that is sent repeatedly. Its path is empty if the command starts its own server.
    var request: HTTPRequest<Response>
    var configuration: NetworkConfiguration

    init(request: HTTPRequest<Response>, configuration: NetworkConfiguration = NetworkConfiguration()) {
        self.request = request
        self.configuration = configuration
    }

    init(_ arguments: ParsedArguments) throws {
        if let text = arguments.last("from-curl") {
            try Self.refuse(besidesCurl: arguments)
            try self.init(curl: text)
        } else {
            try self.init(options: arguments)
        }
        if let engine = try EngineOption.engine(arguments) { configuration.engine = engine }
        try HTTPCacheOption.apply(arguments, to: &configuration)
        if let path = arguments.last("schema") { request.jsonSchema = try SchemaFile.schema(at: path) }
        if let ranges = try arguments.statusRanges("status") {
            request.statusValidation = .custom { status in ranges.contains { $0.contains(status) } }
        }
    }

    private init(options arguments: ParsedArguments) throws {
        if arguments.operands.count > 1 { throw UsageError("expected one URL, found also '\(arguments.operands[1])'") }
        configuration = try NetworkConfiguration(arguments)
        request = HTTPRequest(.get, try arguments.operands.first.map(CommandURL.complete) ?? "")
        for field in try arguments.headerFields("header") { request.headers.append(field.name, field.value) }
        request.body = try FetchBody.make(arguments, isRepeated: true)
        request.method = HTTPMethod(arguments.last("request") ?? (request.body == nil ? "GET" : "POST"))
        request.authorization = try FetchRequest.authorization(arguments)
        if let total = try arguments.seconds("timeout") { request.timeouts = Timeouts(idle: nil, total: total) }
    }

    /// Refuses options that contradict the curl command line.
    private static func refuse(besidesCurl arguments: ParsedArguments) throws(UsageError) {
        let names = [
            "request", "header", "data", "json-body", "timeout", "max-redirects", "compressed", "no-compressed",
        ]
        let groups = FetchCommand.credentials.options + FetchCommand.connection.options
        for name in names + groups.map(\.name) where name != EngineOption.name && arguments.has(name) {
            throw UsageError("--from-curl and --\(name) cannot be combined")
        }
        if let url = arguments.operands.first {
            throw UsageError("--from-curl and a URL ('\(url)') cannot be combined")
        }
    }

    /// Throws if the request is invalid. Otherwise thousands of requests would fail before the report says so.
    func check() throws(UsageError) { try RequestCheck.check(request, configuration) }

    /// Whether the command line names a server; otherwise one is started.
    var hasServer: Bool { !request.path.isEmpty }
}

extension BenchOrder {
    /// Creates the request that a curl command line would send.
    init(curl text: String) throws {
        let line: CurlCommandLine
        do {
            line = try CurlCommandLine(text) { try InputFile.bytes(at: $0) }
        } catch let error as UsageError {
            throw UsageError("--from-curl: " + error.message)
        }
        self.init(request: try Self.request(line), configuration: Self.configuration(line))
    }

    private static func request(_ line: CurlCommandLine) throws -> HTTPRequest<Response> {
        var request = HTTPRequest(.get, line.url)
        for field in line.headers { request.headers.append(field.name, field.value) }
        // curl sends this with every request.
        if !request.headers.contains("Accept"), !line.removed.contains("accept") {
            request.headers.append("Accept", "*/*")
        }
        if let body = line.body {
            let hasNoType = line.removed.contains("content-type")
            request.body = .bytes(body, contentType: hasNoType ? nil : line.contentType)
        }
        if !line.form.isEmpty { request.body = .multipart(try multipart(line.form)) }
        let implied = line.wantsHead ? "HEAD" : request.body == nil ? "GET" : "POST"
        request.method = HTTPMethod(line.method ?? implied)
        if let bearer = line.bearer {
            request.authorization = .bearer(bearer)
        } else if let credentials = line.credentials {
            request.authorization =
                line.usesDigest
                ? .digest(credentials.user, credentials.password) : .basic(credentials.user, credentials.password)
        }
        if line.maxTime != nil || line.connectTimeout != nil {
            request.timeouts = Timeouts(connect: line.connectTimeout, idle: nil, total: line.maxTime)
        }
        return request
    }

    private static func configuration(_ line: CurlCommandLine) -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        // curl neither follows redirects nor asks for compression unless it is told to.
        configuration.redirectPolicy = line.followsRedirects ? .follow(upTo: redirects(line)) : .none
        if !line.isCompressed { configuration.acceptedEncodings = [] }
        if let name = line.userAgent { configuration.userAgent = name.isEmpty ? nil : name }
        if line.removed.contains("user-agent") { configuration.userAgent = nil }
        if let proxy = line.proxy { configuration.proxy = .url(with(line.proxyUser, proxy)).except(line.noProxy) }
        if line.usesHTTP2 { configuration.http2 = .negotiated }
        if line.knowsHTTP2 { configuration.http2 = .priorKnowledge }
        if line.retries > 0 { configuration.retryPolicy = .exponential(maxAttempts: line.retries + 1) }
        configuration.tls.authorityFile = line.authorities
        if line.isInsecure { configuration.tls.verification = .none }
        if line.requiresTLS13 { configuration.tls.minimumVersion = .v13 }
        if let file = line.certificate {
            configuration.tls.clientCertificate = ClientCertificate(
                certificateFile: file, keyFile: line.key, keyPassword: line.keyPassword)
        }
        return configuration
    }

    private static func multipart(_ parts: [CurlFormPart]) throws(InputError) -> Multipart {
        var form = Multipart()
        for part in parts {
            switch part.content {
            case .text(let text):
                if let type = part.type {
                    form.append(part.name, Array(text.utf8), filename: part.filename, contentType: type)
                } else {
                    form.append(part.name, text)
                }
            case .file(let path):
                if access(path, R_OK) != 0 { throw InputError("\(path): \(String(cString: strerror(errno)))") }
                try form.append(
                    part.name, inputFile: path, filename: part.filename,
                    contentType: part.type ?? "application/octet-stream")
            }
        }
        return form
    }

    /// Adds the credentials of `-U`, which override those in the proxy URL.
    private static func with(_ credentials: Credentials?, _ proxy: String) -> String {
        guard let credentials, let start = CommandURL.schemeEnd(proxy) else { return proxy }
        // By bytes: each of these and a combining mark after it are one character.
        let rest = proxy.utf8[start...]
        let end = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let host = rest[..<end].lastIndex(of: UInt8(ascii: "@")).map { rest[rest.index(after: $0)...] } ?? rest
        let (user, password) = (
            PercentEncoding.encoded(credentials.user), PercentEncoding.encoded(credentials.password)
        )
        let scheme = String(decoding: proxy.utf8[..<start], as: UTF8.self)
        return "\(scheme)\(user):\(password)@" + String(decoding: host, as: UTF8.self)
    }

    /// curl's default is 50; -1 means no limit.
    private static func redirects(_ line: CurlCommandLine) -> Int {
        let wanted = line.maxRedirects ?? 50
        return wanted < 0 ? 1000 : wanted
    }
}

internal import Ferry
internal import FoundationEssentials

extension BenchOrder {
    /// The request that a command line of curl would send.
    init(curl text: String) throws {
        let line: CurlCommandLine
        do {
            line = try CurlCommandLine(text, reading: Self.content)
        } catch let error as UsageError {
            throw UsageError("--from-curl: " + error.message)
        }
        self.init(request: try Self.request(line), configuration: Self.configuration(line))
    }

    private static func content(of path: String) throws -> [UInt8] {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw InputError("\(path): cannot be read") }
        return Array(data)
    }

    private static func request(_ line: CurlCommandLine) throws -> BenchRequest {
        var request = BenchRequest(path: line.url)
        for field in line.headers { request.headers.append(field.name, field.value) }
        // What curl sends with every request.
        if !request.headers.contains("Accept"), !line.removed.contains("accept") {
            request.headers.append("Accept", "*/*")
        }
        if let body = line.body {
            let hasNoType = line.removed.contains("content-type")
            request.body = .bytes(body, contentType: hasNoType ? nil : line.contentType)
        }
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
        if let proxy = line.proxy { configuration.proxy = .url(proxy).except(line.noProxy) }
        if line.usesHTTP2 { configuration.http2 = .negotiated }
        configuration.tls.authorityFile = line.authorities
        if line.isInsecure { configuration.tls.verification = .none }
        if line.requiresTLS13 { configuration.tls.minimumVersion = .v13 }
        if let file = line.certificate {
            configuration.tls.clientCertificate = ClientCertificate(certificateFile: file, keyFile: line.key)
        }
        return configuration
    }

    /// curl's own bound is 50, and -1 is none.
    private static func redirects(_ line: CurlCommandLine) -> Int {
        let wanted = line.maxRedirects ?? 50
        return wanted < 0 ? 1000 : wanted
    }
}

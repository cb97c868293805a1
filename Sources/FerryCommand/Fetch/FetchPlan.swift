internal import Ferry
internal import Glibc

/// The parsed command line.
struct FetchPlan: Sendable {
    var request: FetchRequest
    var configuration: NetworkConfiguration
    var statusRanges: [ClosedRange<Int>]
    /// The schema for an accepted response.
    var schema: JSONSchema?
    /// `nil` without a cache.
    var cache: FetchCache?
    var count: Int
    var delay: Duration
    var printsJSON: Bool
    var form: FetchForm
    /// Where the body is written; `nil` for standard output.
    var outputPath: String?
    var printsCurl: Bool
    var showsSecrets: Bool
    var printsEvents: Bool
    var reconnection = EventReconnection()
    /// The parent of the spans that are sent.
    var trace: TraceContext?
    /// Where the exchanges are written.
    var archivePath: String?

    init(_ arguments: ParsedArguments) throws {
        guard let url = arguments.operands.first else { throw UsageError("no URL given") }
        if arguments.operands.count > 1 { throw UsageError("expected one URL, found also '\(arguments.operands[1])'") }
        request = try FetchRequest(url: url, arguments)
        form = FetchForm(arguments)
        outputPath = try Self.outputPath(arguments, url)
        if let outputPath { try OutputFile.check(outputPath) }
        configuration = try NetworkConfiguration(arguments)
        statusRanges = try arguments.statusRanges("status") ?? [200...299]
        if let path = arguments.last("schema") { schema = try SchemaFile.schema(at: path) }
        cache = try FetchCache(arguments)
        count = try arguments.integer("repeat", in: 1...Int.max) ?? 1
        delay = try arguments.seconds("repeat-delay", allowingZero: true) ?? .zero
        printsJSON = arguments.has("json")
        printsCurl = arguments.has("to-curl")
        showsSecrets = arguments.has("show-secrets")
        if printsJSON && arguments.last("output") == "-" {
            throw UsageError("--json and --output - cannot be combined: both print to standard output")
        }
        if printsJSON && arguments.has("include") { throw UsageError("--json and --include cannot be combined") }
        printsEvents = arguments.has("events")
        if printsEvents {
            for other in ["head", "include", "status", "schema", "cache-dir", "cache", "repeat", "to-curl"]
            where arguments.has(other) {
                throw UsageError("--events and --\(other) cannot be combined")
            }
            if let retries = try arguments.integer("retries", in: 0...10_000) { reconnection.maxFailures = retries }
            // Otherwise each connection would have as many attempts of its own.
            configuration.retryPolicy = .none
        }
        if let text = arguments.last("traceparent") {
            trace = text == "new" ? TraceContext() : TraceContext(traceparent: text)
            if trace == nil { throw UsageError("--traceparent must be 00-TRACE-SPAN-FLAGS in hexadecimal, or new") }
        }
        if let path = arguments.last("har") {
            archivePath = try OutputFile.checked(path, of: "har")
            configuration.recorder = Recorder()
        }
        if printsJSON && printsCurl { throw UsageError("--json and --to-curl cannot be combined") }
        if showsSecrets && !printsCurl { throw UsageError("--show-secrets requires --to-curl") }
        if let cache {
            configuration.cache = cache.location.configuration(connects: true)
            request.cachePolicy = cache.policy
            request.cacheMode = cache.mode
            // Every status is accepted, but not every response is worth storing.
            request.keeps = { [statusRanges, schema] response in
                guard statusRanges.contains(where: { $0.contains(response.status) }) else { return false }
                guard let schema else { return true }
                return (try? response.check(by: schema)) != nil
            }
        }
        if arguments.has("verbose") {
            let log = FetchLog()
            configuration.logSink = log
            request.observers = [log]
        }
    }

    private static func outputPath(_ arguments: ParsedArguments, _ url: String) throws(UsageError) -> String? {
        guard arguments.has("remote-name") else {
            let path = arguments.last("output")
            return path == "-" ? nil : path
        }
        if arguments.has("output") { throw UsageError("--output and --remote-name cannot be combined") }
        guard let name = CommandURL.fileName(of: url) else {
            throw UsageError("--remote-name needs a URL that ends in a file name; name the file with --output")
        }
        return name
    }
}

extension AddressSelection {
    /// The values on the command line.
    static let words = ["ordered", "round-robin", "least-requests"]

    init?(word: String) {
        switch word {
        case "ordered": self = .ordered
        case "round-robin": self = .roundRobin
        case "least-requests": self = .leastRequests
        default: return nil
        }
    }
}

extension NetworkConfiguration {
    /// The settings of the agent.
    init(_ arguments: ParsedArguments) throws {
        self.init()
        keepsCookies = arguments.has("cookies")
        if let engine = try EngineOption.engine(arguments) { self.engine = engine }
        if arguments.has("http2") { http2 = .negotiated }
        if let limit = try arguments.integer("max-redirects", in: 0...Int.max) {
            redirectPolicy = limit == 0 ? .none : .follow(upTo: limit)
        }
        if let retries = try arguments.integer("retries", in: 0...10_000), retries > 0 {
            retryPolicy = .exponential(maxAttempts: retries + 1)
        }
        if arguments.has("public-only") { addressPolicy = .publicOnly }
        proxy = try Self.proxy(arguments)
        unixSocket = arguments.last("unix-socket")
        if let length = unixSocket?.utf8.count, !(1...107).contains(length) {
            throw UsageError("--unix-socket must be a path of 1 to 107 bytes, not of \(length)")
        }
        if unixSocket != nil, let other = ["proxy", "proxy-env", "public-only"].first(where: arguments.has) {
            throw UsageError("--unix-socket and --\(other) cannot be combined")
        }
        hostOverrides = try Self.hostOverrides(arguments)
        if let name = arguments.last("address-selection") {
            guard let selection = AddressSelection(word: name) else {
                throw UsageError("--address-selection must be ordered, round-robin or least-requests, not '\(name)'")
            }
            addressSelection = selection
        }
        limits.minimumIdlePerHost = try arguments.integer("connect-ahead", in: 0...100_000) ?? 0
        tcpKeepAlive = try arguments.seconds("keepalive-time")
        limits.maxStreamsPerConnection = try arguments.integer("max-streams", in: 1...100) ?? 100
        tls = try TLSConfiguration(arguments)
        // The last one is used.
        let compression = arguments.options.last { $0.name == "compressed" || $0.name == "no-compressed" }
        if compression?.name == "no-compressed" { acceptedEncodings = [] }
    }

    /// `HOST:PORT:ADDR,…`, as in curl; IPv6 addresses with or without brackets. The engine would refuse another host,
    /// port or address only when it sends a request.
    private static func hostOverrides(_ arguments: ParsedArguments) throws(UsageError) -> [String: [String]] {
        var overrides: [String: [String]] = [:]
        for text in arguments.all("resolve") {
            let start = text.first == "[" ? text.firstIndex(of: "]") ?? text.startIndex : text.startIndex
            guard let first = text[start...].firstIndex(of: ":"),
                let second = text[text.index(after: first)...].firstIndex(of: ":")
            else { throw UsageError("--resolve must be HOST:PORT:ADDRESS, not '\(text)'") }
            let (host, port) = (text[..<first], text[text.index(after: first)..<second])
            if host.hasPrefix("[") { throw UsageError("--resolve: the host of '\(text)' cannot be an IPv6 address") }
            let addresses = text[text.index(after: second)...].split(separator: ",", omittingEmptySubsequences: false)
            guard isHost(host), isPort(port), addresses.allSatisfy(isAddress) else {
                throw UsageError("--resolve must be HOST:PORT:ADDRESS, not '\(text)'")
            }
            overrides[String(text[..<second]), default: []] += addresses.map(String.init)
        }
        if let (name, _) = overrides.first(where: { $0.value.count > mostAddresses }) {
            throw UsageError("--resolve: '\(name)' has more than \(mostAddresses) addresses")
        }
        return overrides
    }

    private static let mostAddresses = 16

    private static func isHost(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/\\?#@:%[]\"<>".utf8.contains($0) }
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { 0x30...0x39 ~= $0 } && (UInt16(text) ?? 0) > 0
    }

    private static func isAddress(_ text: Substring) -> Bool {
        var (v4, v6) = (in_addr(), in6_addr())
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let bare = String(isBracketed ? text.dropFirst().dropLast() : text)
        return inet_pton(AF_INET6, bare, &v6) == 1 || !isBracketed && inet_pton(AF_INET, bare, &v4) == 1
    }

    private static func proxy(_ arguments: ParsedArguments) throws(UsageError) -> ProxyConfiguration {
        var proxy = ProxyConfiguration.none
        if let url = arguments.last("proxy") {
            if arguments.has("proxy-env") { throw UsageError("--proxy and --proxy-env cannot be combined") }
            proxy = .url(url)
            if isInvalid(proxy) {
                // Everything before an @ may be a password.
                let found = url.utf8.contains(UInt8(ascii: "@")) ? "" : ", not '\(url)'"
                throw UsageError("--proxy must be http://, socks5:// or socks5h://, and a host\(found)")
            }
        } else if arguments.has("proxy-env") {
            proxy = .environment
        } else if arguments.has("no-proxy") {
            throw UsageError("--no-proxy requires --proxy or --proxy-env")
        }
        let exceptions = arguments.all("no-proxy").flatMap { $0.split(separator: ",").map(String.init) }
        if let wrong = exceptions.first(where: { isInvalid(ProxyConfiguration.none.except($0)) }) {
            throw UsageError("--no-proxy must be hosts, separated by commas, not '\(wrong)'")
        }
        return exceptions.isEmpty ? proxy : proxy.except(exceptions)
    }

    /// Whether every request through it would fail.
    private static func isInvalid(_ proxy: ProxyConfiguration) -> Bool {
        proxy.description == "http: invalid, https: invalid"
    }
}

extension TLSConfiguration {
    fileprivate init(_ arguments: ParsedArguments) throws {
        self.init(authorityFile: try arguments.file("cacert"), pinnedKeys: arguments.all("pin"))
        if arguments.has("insecure") { verification = .none }
        for pin in pinnedKeys where !pin.hasPrefix("sha256//") {
            throw UsageError("--pin must be sha256//BASE64, not '\(pin)'")
        }
        if let file = try arguments.file("cert") {
            clientCertificate = ClientCertificate(certificateFile: file, keyFile: try arguments.file("key"))
        } else if arguments.has("key") {
            throw UsageError("--key requires --cert")
        }
        switch arguments.last("tls-min") {
        case nil, "1.2": minimumVersion = .v12
        case "1.3": minimumVersion = .v13
        case .some(let text): throw UsageError("--tls-min must be 1.2 or 1.3, not '\(text)'")
        }
    }
}

extension ParsedArguments {
    /// The path of a readable file that is not a pipe.
    fileprivate func file(_ name: String) throws(InputError) -> String? {
        guard let path = last(name) else { return nil }
        return try InputFile.reopenable(path)
    }
}

/// The cache options of the command line.
struct FetchCache: Sendable {
    var location: CacheLocation
    var policy: CachePolicy
    var mode: CacheMode

    /// `nil` without cache options.
    init?(_ arguments: ParsedArguments) throws(UsageError) {
        let version = try arguments.integer("cache-version", in: 0...Int.max)
        let time = try arguments.seconds("cache-ttl")
        let word = arguments.last("cache-mode") ?? "else-network"
        guard let mode = CacheMode(word: word) else {
            throw UsageError("--cache-mode must be else-network, reload or only, not '\(word)'")
        }
        guard let location = try CacheLocation(arguments) else {
            for name in ["cache-ttl", "http-cache", "cache-version", "cache-mode"] where arguments.has(name) {
                throw UsageError("--\(name) requires --cache-dir or --cache")
            }
            return nil
        }
        self.location = location
        self.mode = mode
        if arguments.has("http-cache") {
            for name in ["cache-ttl", "cache-version"] where arguments.has(name) {
                throw UsageError("--http-cache and --\(name) cannot be combined: the server decides how long")
            }
            policy = .http(shared: try Self.isShared(arguments.last("http-cache")))
            return
        }
        guard let time else {
            throw UsageError("--\(CacheLocation.name(arguments)) requires --cache-ttl or --http-cache")
        }
        policy = .timeToLive(time, version: version ?? 0)
    }

    /// Parses the value of `--http-cache`.
    static func isShared(_ word: String?) throws(UsageError) -> Bool {
        switch word {
        case nil, "": false
        case "private": false
        case "shared": true
        case .some(let word): throw UsageError("--http-cache must be private or shared, not '\(word)'")
        }
    }
}

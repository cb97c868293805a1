internal import Ferry
internal import FoundationEssentials

/// What is sent, and over which way.
struct BenchOrder: Sendable {
    /// Its path is empty where a server is started for it.
    var request: BenchRequest
    var configuration: NetworkConfiguration

    init(request: BenchRequest, configuration: NetworkConfiguration = NetworkConfiguration()) {
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
        if arguments.operands.count > 1 { throw UsageError("one URL only, not also '\(arguments.operands[1])'") }
        configuration = try NetworkConfiguration(arguments)
        request = BenchRequest(path: try arguments.operands.first.map(CommandURL.complete) ?? "")
        for field in try arguments.headerFields("header") { request.headers.append(field.name, field.value) }
        request.body = try FetchBody.make(arguments, isRepeated: true)
        request.method = HTTPMethod(arguments.last("request") ?? (request.body == nil ? "GET" : "POST"))
        request.authorization = try FetchRequest.authorization(arguments)
        if let total = try arguments.seconds("timeout") { request.timeouts = Timeouts(idle: nil, total: total) }
    }

    /// Two that say what is sent would leave open which of them counts.
    private static func refuse(besidesCurl arguments: ParsedArguments) throws(UsageError) {
        let names = [
            "request", "header", "data", "json-body", "timeout", "max-redirects", "compressed", "no-compressed",
        ]
        let groups = FetchCommand.credentials.options + FetchCommand.connection.options
        for name in names + groups.map(\.name) where name != EngineOption.name && arguments.has(name) {
            throw UsageError("--from-curl and --\(name) exclude each other")
        }
        if let url = arguments.operands.first {
            throw UsageError("--from-curl and a URL ('\(url)') exclude each other")
        }
    }

    /// Throws where the request cannot even be made, which would be known of each of thousands only after the load.
    func check() throws(UsageError) {
        do throws(RequestError) {
            _ = try NetworkAgent(configuration: configuration).curlCommand(for: request)
        } catch {
            throw UsageError(FailureText.of(error, request))
        }
    }

    /// Whether there is a server to ask, or one must be started.
    var hasServer: Bool { !request.path.isEmpty }
}

/// What is sent again and again.
struct BenchRequest: Request {
    var path: String
    var method = HTTPMethod.get
    var headers = Headers()
    var body: RequestBody?
    var authorization: Authorization?
    var timeouts: Timeouts?
    var jsonSchema: JSONSchema?
    var statusValidation: StatusValidation?
    var observers: [any RequestObserver] = []
}

internal import Ferry

/// The request that the command line describes.
struct FetchRequest: Request {
    var path: String
    var method = HTTPMethod.get
    var headers = Headers()
    var body: RequestBody?
    var authorization: Authorization?
    var timeouts: Timeouts?
    var deadline: Duration?
    var maxBodyBytes: Int?
    var observers: [any RequestObserver] = []
    var cachePolicy = CachePolicy.none
    var cacheMode = CacheMode.cacheElseNetwork
    var idempotencyKey: IdempotencyKey?
    var keeps: @Sendable (Response) -> Bool = { _ in true }

    /// Every status is let through: the command itself judges, as it wants to print the body all the same.
    var statusValidation: StatusValidation? { .any }

    init(url: String, _ arguments: ParsedArguments) throws {
        path = URLQuery.appending(try arguments.pairs("query"), to: try CommandURL.complete(url))
        for field in try arguments.headerFields("header") { headers.append(field.name, field.value) }
        body = try FetchBody.make(arguments)
        method = try Self.method(arguments, hasBody: body != nil)
        authorization = try Self.authorization(arguments)
        timeouts = try Self.timeouts(arguments)
        deadline = try arguments.seconds("deadline")
        maxBodyBytes = try arguments.bytes("max-body")
        idempotencyKey = arguments.last("idempotency-key").map { $0 == "auto" ? .automatic : .value($0) }
    }

    func shouldCache(_ response: Response) -> Bool { keeps(response) }

    private static func method(_ arguments: ParsedArguments, hasBody: Bool) throws(UsageError) -> HTTPMethod {
        guard arguments.has("head") else { return HTTPMethod(arguments.last("request") ?? (hasBody ? "POST" : "GET")) }
        if arguments.has("request") { throw UsageError("--head and --request exclude each other") }
        if hasBody { throw UsageError("--head sends no body, and one is given") }
        return .head
    }

    static func authorization(_ arguments: ParsedArguments) throws(UsageError) -> Authorization? {
        let kinds = ["basic", "digest", "bearer"].filter(arguments.has)
        if kinds.count > 1 { throw UsageError("--\(kinds[0]) and --\(kinds[1]) exclude each other") }
        guard let kind = kinds.first, let text = arguments.last(kind) else { return nil }
        if kind == "bearer" { return .bearer(text) }
        guard let credentials = Credentials(text) else { throw UsageError("--\(kind) wants USER:PASSWORD") }
        let (user, password) = (credentials.user, credentials.password)
        return kind == "basic" ? .basic(user, password) : .digest(user, password)
    }

    private static func timeouts(_ arguments: ParsedArguments) throws(UsageError) -> Timeouts? {
        var timeouts = Timeouts()
        timeouts.connect = try arguments.seconds("connect-timeout")
        if let total = try arguments.seconds("timeout") {
            // Whoever allows 120 seconds also allows 120 seconds of silence.
            timeouts.total = total
            timeouts.idle = nil
        }
        if let rate = try arguments.bytes("low-speed") {
            timeouts.lowSpeed = .init(bytesPerSecond: rate, time: .seconds(10))
        }
        return timeouts
    }
}

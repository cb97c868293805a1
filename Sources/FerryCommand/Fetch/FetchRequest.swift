internal import Dispatch
internal import Ferry
internal import FoundationEssentials
internal import Glibc

/// The request that the command line describes. Not an `HTTPRequest`, as it decides itself which responses are kept.
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

    /// Every status is accepted here: the command itself judges it, because it prints the body in any case.
    var statusValidation: StatusValidation? { .any }

    init(url: String, _ arguments: ParsedArguments) throws {
        path = URLQuery.appending(try arguments.pairs("query"), to: try CommandURL.complete(url))
        for field in try arguments.headerFields("header") { headers.append(field.name, field.value) }
        body = try CompressionOption.apply(arguments, to: FetchBody.make(arguments))
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
        if arguments.has("request") { throw UsageError("--head and --request cannot be combined") }
        if hasBody { throw UsageError("--head cannot be combined with a body") }
        return .head
    }

    static func authorization(_ arguments: ParsedArguments) throws(UsageError) -> Authorization? {
        let kinds = ["basic", "digest", "bearer"].filter(arguments.has)
        if kinds.count > 1 { throw UsageError("--\(kinds[0]) and --\(kinds[1]) cannot be combined") }
        guard let kind = kinds.first, let text = arguments.last(kind) else { return nil }
        if kind == "bearer" { return .bearer(text) }
        guard let credentials = Credentials(text) else { throw UsageError("--\(kind) must be USER:PASSWORD") }
        let (user, password) = (credentials.user, credentials.password)
        return kind == "basic" ? .basic(user, password) : .digest(user, password)
    }

    private static func timeouts(_ arguments: ParsedArguments) throws(UsageError) -> Timeouts? {
        var timeouts = Timeouts()
        timeouts.connect = try arguments.seconds("connect-timeout")
        if let total = try arguments.seconds("timeout") {
            // A limit of 120 seconds also allows 120 seconds of silence.
            timeouts.total = total
            timeouts.idle = nil
        }
        if let rate = try arguments.bytes("low-speed") {
            timeouts.lowSpeed = .init(bytesPerSecond: rate, time: .seconds(10))
        }
        return timeouts
    }
}

/// `--compress-body`
enum CompressionOption {
    static let words = ["gzip", "zstd"]

    static func apply(_ arguments: ParsedArguments, to body: RequestBody?) throws(UsageError) -> RequestBody? {
        guard let word = arguments.last("compress-body") else { return body }
        guard let body else { throw UsageError("--compress-body requires a body") }
        switch word {
        case "gzip": return body.compressed(.gzip)
        case "zstd": return body.compressed(.zstd)
        default: throw UsageError("--compress-body must be gzip or zstd, not '\(word)'")
        }
    }
}

/// The body that the command line describes. Files are read as the socket accepts data.
enum FetchBody {
    static func make(_ arguments: ParsedArguments, isRepeated: Bool = false) throws -> RequestBody? {
        let kinds = ["data", "form", "multipart", "json-body"].filter(arguments.has)
        if kinds.count > 1 { throw UsageError("--\(kinds[0]) and --\(kinds[1]) cannot be combined") }
        switch kinds.first {
        case "data": return try data(arguments.all("data"), isSentOnce: try !isRepeated && isSentOnce(arguments))
        case "form": return .string(URLQuery.encoded(try arguments.pairs("form")), contentType: formType)
        case "multipart": return .multipart(try multipart(arguments.pairs("multipart")))
        case "json-body": return try json(arguments.last("json-body") ?? "")
        default: return nil
        }
    }

    /// The body of `-d` or `--json-body`, read completely.
    static func held(_ arguments: ParsedArguments) throws -> (bytes: [UInt8], contentType: String)? {
        if arguments.has("data") && arguments.has("json-body") {
            throw UsageError("--data and --json-body cannot be combined")
        }
        if let value = arguments.last("json-body") { return (try jsonBytes(value), "application/json") }
        return arguments.has("data") ? (try dataBytes(arguments.all("data")), formType) : nil
    }

    private static let formType = "application/x-www-form-urlencoded"

    /// Standard input can be read only once: if it may be needed again it is held in memory. A redirect may need it
    /// (307, 308), and redirects are followed unless they are turned off.
    private static func isSentOnce(_ arguments: ParsedArguments) throws -> Bool {
        let follows = try arguments.integer("max-redirects", in: 0...Int.max) != 0
        return !follows && !["repeat", "retries", "digest", "events"].contains(where: arguments.has)
    }

    /// One value is sent unchanged; several are separated by `&`.
    private static func data(_ values: [String], isSentOnce: Bool) throws -> RequestBody {
        if values.count == 1, values[0].hasPrefix("@") {
            let path = String(values[0].dropFirst())
            if InputFile.isStreamable(path) { return .file(try InputFile.readable(path), contentType: formType) }
            if path == "-" && isSentOnce { return .stream(once: StandardInput(), contentType: formType) }
        }
        return .bytes(try dataBytes(values), contentType: formType)
    }

    private static func dataBytes(_ values: [String]) throws -> [UInt8] {
        Array(try values.map(content).joined(separator: [UInt8(ascii: "&")]))
    }

    private static func json(_ value: String) throws -> RequestBody {
        .bytes(try jsonBytes(value), contentType: "application/json")
    }

    private static func jsonBytes(_ value: String) throws -> [UInt8] {
        let json = try content(value)
        do throws(JSONSyntaxError) {
            do throws(JSONSyntaxError) {
                _ = try JSON(parsing: json)
            } catch  where error.reason == .invalidNumber {
                _ = try JSON(parsing: withoutNumbers(json))
            }
        } catch {
            throw UsageError("--json-body is not valid JSON: \(error.reason), at byte \(error.offset)")
        }
        return json
    }

    /// The text with a zero and spaces in the place of each valid number: the grammar allows numbers of any size (RFC
    /// 8259, 6), while the parser refuses those that are no finite double.
    private static func withoutNumbers(_ json: [UInt8]) -> [UInt8] {
        var (made, index, isString) = (json, 0, false)
        while index < json.count {
            let start = index
            index += 1
            switch json[start] {
            case UInt8(ascii: "\""): isString.toggle()
            case UInt8(ascii: "\\") where isString: index += 1
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !isString, UInt8(ascii: "-") where !isString:
                let number = json[start...].prefix { "0123456789+-.eE".utf8.contains($0) }
                index = number.endIndex
                let grammar = #/-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/#
                if String(decoding: number, as: UTF8.self).wholeMatch(of: grammar) == nil { continue }
                made[start] = UInt8(ascii: "0")
                for place in (start + 1)..<index { made[place] = UInt8(ascii: " ") }
            default: break
            }
        }
        return made
    }

    /// `name=text`, or `name=@path`, optionally followed by `;type=` and `;filename=` in any order.
    private static func multipart(_ pairs: [(name: String, value: String)]) throws -> Multipart {
        var form = Multipart()
        for (name, value) in pairs {
            guard value.hasPrefix("@") else {
                form.append(name, value)
                continue
            }
            let words = value.dropFirst().split(separator: ";", omittingEmptySubsequences: false)
            var path = String(words[0])
            var type = "application/octet-stream"
            var filename: String?
            for word in words.dropFirst() {
                if word.hasPrefix("type=") {
                    type = String(word.dropFirst(5))
                } else if word.hasPrefix("filename=") {
                    filename = String(word.dropFirst(9))
                } else {
                    // It is part of the path.
                    path += ";" + word
                }
            }
            try form.append(name, inputFile: path, filename: filename, contentType: type)
        }
        return form
    }

    /// The value itself, or the content of the file it names.
    private static func content(_ value: String) throws -> [UInt8] {
        guard value.hasPrefix("@") else { return Array(value.utf8) }
        return try InputFile.bytes(at: String(value.dropFirst()))
    }
}

/// Standard input, piece by piece as it is requested.
struct StandardInput: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        /// Waiting for a terminal must not block a thread of the task executor.
        func next() async throws(InputError) -> Data? {
            let result = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(returning: Result { () throws(InputError) in try StandardInput.read() })
                }
            }
            return try result.get()
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }

    /// All of it, in memory.
    static func all() throws(InputError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try read() { bytes += piece }
        return bytes
    }

    /// Waits for data and returns it; `nil` at the end.
    private static func read() throws(InputError) -> Data? {
        var space = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(STDIN_FILENO, &space, space.count)
            if count > 0 { return Data(space[..<count]) }
            if count == 0 { return nil }
            if errno != EINTR { throw InputError("standard input: \(String(cString: strerror(errno)))") }
        }
    }
}

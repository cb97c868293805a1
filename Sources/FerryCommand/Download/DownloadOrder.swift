internal import Ferry
internal import Glibc

/// What the command line asks for.
struct DownloadOrder: Sendable {
    var requests: [FileRequest]
    var target: DownloadTarget
    var options = DownloadOptions()
    var configuration: NetworkConfiguration
    var atOnce: Int
    var printsJSON: Bool
    var showsProgress: Bool

    init(_ arguments: ParsedArguments) throws {
        if arguments.operands.isEmpty { throw UsageError("a URL is needed") }
        requests = try arguments.operands.map { try FileRequest(url: $0, arguments) }
        target = Self.target(arguments.last("output") ?? ".")
        if requests.count > 1, case .file(let path) = target {
            throw UsageError("several files need a directory, and '\(path)' is none")
        }
        if let digest = arguments.last("sha256") {
            guard SHA256.isHexadecimal(digest) else {
                throw UsageError("--sha256 wants 64 hexadecimal digits, not '\(digest)'")
            }
            if requests.count > 1 { throw UsageError("--sha256 is of one file, and there are several") }
            options.sha256 = digest
        }
        options.segments = try arguments.integer("segments", in: 1...64) ?? 1
        options.bytesPerSecond = try arguments.bytes("limit-rate")
        options.resumes = !arguments.has("restart")
        atOnce = try arguments.integer("at-once", in: 1...1000) ?? 4
        configuration = try NetworkConfiguration(arguments)
        let retries = try arguments.integer("retries", in: 0...10_000) ?? 5
        configuration.retryPolicy = retries == 0 ? .none : .exponential(maxAttempts: retries + 1)
        configuration.retryPolicy.retryableErrors.append(.timeout(.read))
        printsJSON = arguments.has("json")
        showsProgress = !arguments.has("quiet") && Console.isLive
    }

    /// What is a directory, or is written like one.
    private static func target(_ path: String) -> DownloadTarget {
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        return isDirectory || path.hasSuffix("/") ? .directory(path) : .file(path)
    }
}

/// A file, as the command line asks for it.
struct FileRequest: Request {
    var path: String
    var headers: Headers
    var authorization: Authorization?
    var timeouts: Timeouts?
    var deadline: Duration?

    init(url: String, _ arguments: ParsedArguments) throws {
        let request = try FetchRequest(url: url, arguments)
        path = request.path
        headers = request.headers
        authorization = request.authorization
        timeouts = request.timeouts
        deadline = request.deadline
    }
}

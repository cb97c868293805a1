internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// `ferry download`: several files at once, each resumed where an earlier run ended.
enum DownloadCommand: Subcommand {
    static let name = "download"
    static let summary = "Download files, and resume partial downloads"
    static let synopsis = "URL... [OPTIONS]"
    static let notes = """
        A file is downloaded to NAME.ferry-part and renamed when it is complete. If you run the command again, it
        requests only what is missing, provided that the file on the server is still the same. A complete file that
        the server has not changed is kept, and nothing is transferred. The first ctrl-C keeps the partial file and
        prints its size.
        In a directory no file is replaced: a second x.zip becomes x-1.zip. A URL that is given twice is downloaded
        once. A FILE given with -o is replaced; if it is
        a link, the file that it names. It cannot be a pipe or a device: for these there is ferry fetch -o.
        The path of each file goes to standard output. Progress goes to standard error, on a terminal only.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        let order = try DownloadOrder(arguments)
        let (code, wasInterrupted) = try await interruptible { await perform(order) }
        return wasInterrupted ? .interrupted : code
    }

    /// Returns the exit code of the first download that failed.
    static func perform(_ order: DownloadOrder) async -> ExitCode {
        let board = order.showsProgress ? DownloadBoard() : nil
        let agent = NetworkAgent(configuration: order.configuration)
        let painter = board.map { board in Task { await board.show() } }
        var code = ExitCode.success
        await withTaskGroup(of: DownloadReport.self) { group in
            var waiting = order.requests[...]
            for _ in 0..<order.atOnce { add(&waiting, order, agent, board, to: &group) }
            while let report = await group.next() {
                if code == .success { code = report.exitCode }
                tell(report, order, board)
                if !Task.isCancelled { add(&waiting, order, agent, board, to: &group) }
            }
            for request in waiting { tell(DownloadReport(unstarted: request), order, board) }
        }
        painter?.cancel()
        await painter?.value
        await agent.shutdown(grace: .zero)
        return code
    }

    private static func add(
        _ waiting: inout ArraySlice<HTTPRequest<Response>>, _ order: DownloadOrder, _ agent: NetworkAgent,
        _ board: DownloadBoard?, to group: inout TaskGroup<DownloadReport>
    ) {
        guard let request = waiting.popFirst() else { return }
        group.addTask { await DownloadReport(of: request, order, by: agent, on: board) }
    }

    private static func tell(_ report: DownloadReport, _ order: DownloadOrder, _ board: DownloadBoard?) {
        if order.printsJSON {
            Console.out(report.json + "\n")
        } else if let path = report.path, !(board != nil && Console.outIsTerminal) {
            Console.out(path + "\n")
        }
        if let board { return board.leave(report) }
        if let line = report.faultLine, !order.printsJSON {
            Console.error("ferry download: \(Main.oneLine(line))\n")
        }
    }
}

extension DownloadCommand {
    static let optionGroups = [file, FetchCommand.credentials, bounds, FetchCommand.connection, output]

    private static let file = OptionGroup(
        "Files",
        [
            CommandOption(
                "output", "o", value: "FILE|DIR",
                "Write to FILE, or into DIR, which must exist, with the server's file names (.)"),
            CommandOption("sha256", value: "HEX", "Require this SHA-256; for one URL only"),
            CommandOption("segments", value: "N", "Number of segments of a file to download at once (1)"),
            CommandOption("limit-rate", value: "B", "Maximum rate per file in bytes per second, like 500K or 2M"),
            CommandOption("at-once", value: "N", "Number of files to download at once (4)"),
            CommandOption("restart", "Download from the start, even if a part is already there"),
            CommandOption("header", "H", value: "'N: V'", "Add a header field; may be repeated"),
        ])

    private static let bounds = OptionGroup(
        "Limits",
        [
            CommandOption("max-redirects", value: "N", "Maximum number of redirects (10)"),
            CommandOption("retries", value: "N", "Maximum number of retries, which resume the download (5)"),
            CommandOption("timeout", "m", value: "S", "Time limit for each exchange, without its wait in the queue"),
            CommandOption("connect-timeout", value: "S", "Time limit for connecting"),
            CommandOption("deadline", value: "S", "Time limit for the whole run, including retries"),
            CommandOption("low-speed", value: "B", "Fail if slower than B bytes per second over ten seconds"),
        ])

    private static let output = OptionGroup(
        "Output",
        [
            CommandOption("json", "Print one JSON object per line for each file"),
            CommandOption("quiet", "q", "Show no progress"),
        ])
}

/// The files and options from the command line.
struct DownloadOrder: Sendable {
    var requests: [HTTPRequest<Response>]
    var target: DownloadTarget
    var options = DownloadOptions()
    var configuration: NetworkConfiguration
    var atOnce: Int
    var printsJSON: Bool
    var showsProgress: Bool

    init(_ arguments: ParsedArguments) throws {
        if arguments.operands.isEmpty { throw UsageError("no URL given") }
        requests = Self.once(try arguments.operands.map { try Self.request($0, arguments) })
        // Of several, none is sent if one cannot be.
        for request in requests where requests.count > 1 {
            if let error = RequestCheck.fault(of: request) { throw UsageError(FailureText.of(error, request)) }
        }
        target = try OutputFile.downloadTarget(arguments.last("output") ?? ".")
        if requests.count > 1, case .file(let path) = target {
            throw UsageError("several files need a directory, but '\(path)' is not a directory")
        }
        if let digest = arguments.last("sha256") {
            guard SHA256.isHexadecimal(digest) else {
                throw UsageError("--sha256 must be 64 hexadecimal digits, not '\(digest)'")
            }
            if requests.count > 1 { throw UsageError("--sha256 requires a single URL") }
            options.sha256 = digest
        }
        options.segments = try arguments.integer("segments", in: 1...64) ?? 1
        options.bytesPerSecond = try arguments.bytes("limit-rate")
        options.resumes = !arguments.has("restart")
        options.skipsUnchanged = options.resumes
        atOnce = try arguments.integer("at-once", in: 1...1000) ?? 4
        configuration = try NetworkConfiguration(arguments)
        let retries = try arguments.integer("retries", in: 0...10_000) ?? 5
        configuration.retryPolicy = retries == 0 ? .none : .exponential(maxAttempts: retries + 1)
        configuration.retryPolicy.retryableErrors.append(.timeout(.read))
        printsJSON = arguments.has("json")
        showsProgress = !arguments.has("quiet") && Console.isLive
    }

    /// The request for one file.
    private static func request(_ url: String, _ arguments: ParsedArguments) throws -> HTTPRequest<Response> {
        let asked = try FetchRequest(url: url, arguments)
        var request = HTTPRequest(.get, asked.path, headers: asked.headers)
        request.authorization = asked.authorization
        request.timeouts = asked.timeouts
        request.deadline = asked.deadline
        return request
    }

    /// Without what was given twice: two downloads of one URL would write the same partial file.
    private static func once(_ requests: [HTTPRequest<Response>]) -> [HTTPRequest<Response>] {
        // By bytes: to the server, two spellings of one character are two URLs.
        var known: Set<[UInt8]> = []
        return requests.filter { known.insert(Array($0.path.utf8.prefix { $0 != UInt8(ascii: "#") })).inserted }
    }
}

/// The name of a file in the live display.
enum FileName {
    /// The target's name, or the end of the URL's path.
    static func of(_ url: String, _ target: DownloadTarget) -> String {
        let path =
            switch target {
            case .file(let path): path
            // By bytes: each of these and a combining mark after it are one character.
            case .directory: String(decoding: url.utf8.prefix { !"?#".utf8.contains($0) }, as: UTF8.self)
            }
        return path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? path
    }
}

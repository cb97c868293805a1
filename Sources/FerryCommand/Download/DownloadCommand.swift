internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// `ferry download`: files, several at once, each gone on with where an earlier run ended.
enum DownloadCommand: Subcommand {
    static let name = "download"
    static let summary = "Downloads files, and goes on with what is there of them"
    static let synopsis = "URL... [OPTIONS]"
    static let notes = """
        A file is loaded beside its place, as NAME.ferry-part, and takes it when it is whole. Run again, ferry asks
        for what is missing, if the file is still the same; a complete file that the server has not changed stays,
        and nothing is loaded. The first ctrl-C keeps what is there and says how much.
        In a directory nothing is replaced: a second x.zip is x-1.zip. What -o names is replaced.
        Standard output gets the path of each file, standard error the progress, on a terminal only.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        let order = try DownloadOrder(arguments)
        let (code, wasInterrupted) = try await interruptible { await perform(order) }
        return wasInterrupted ? .interrupted : code
    }

    /// The exit code of the first that did not go well counts.
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
        "The files",
        [
            CommandOption("output", "o", value: "FILE|DIR", "Where to; a directory takes the server's names (.)"),
            CommandOption("sha256", value: "HEX", "What the file must be; of one URL only"),
            CommandOption("segments", value: "N", "Parts of a file that are loaded at once (1)"),
            CommandOption("limit-rate", value: "B", "Bytes a second for each file; K, M and G may follow"),
            CommandOption("at-once", value: "N", "Files that are loaded at once (4)"),
            CommandOption("restart", "Begins anew, whatever is there"),
            CommandOption("header", "H", value: "'N: V'", "A header field; may be repeated"),
        ])

    private static let bounds = OptionGroup(
        "How long it may take",
        [
            CommandOption("max-redirects", value: "N", "Redirects to follow; 0 for none (10)"),
            CommandOption("retries", value: "N", "How often to go on after a fault (5)"),
            CommandOption("timeout", "m", value: "S", "Seconds for each exchange, once it has left the queue"),
            CommandOption("connect-timeout", value: "S", "Seconds for the connection"),
            CommandOption("deadline", value: "S", "Seconds for everything, retries included"),
            CommandOption("low-speed", value: "B", "Fail below B bytes a second over ten seconds"),
        ])

    private static let output = OptionGroup(
        "What is said of it",
        [
            CommandOption("json", "Prints one object a line for each file"),
            CommandOption("quiet", "q", "Shows no progress"),
        ])
}

/// What the command line asks for.
struct DownloadOrder: Sendable {
    var requests: [HTTPRequest<Response>]
    var target: DownloadTarget
    var options = DownloadOptions()
    var configuration: NetworkConfiguration
    var atOnce: Int
    var printsJSON: Bool
    var showsProgress: Bool

    init(_ arguments: ParsedArguments) throws {
        if arguments.operands.isEmpty { throw UsageError("a URL is needed") }
        requests = try arguments.operands.map { try Self.request($0, arguments) }
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
        options.skipsUnchanged = options.resumes
        atOnce = try arguments.integer("at-once", in: 1...1000) ?? 4
        configuration = try NetworkConfiguration(arguments)
        let retries = try arguments.integer("retries", in: 0...10_000) ?? 5
        configuration.retryPolicy = retries == 0 ? .none : .exponential(maxAttempts: retries + 1)
        configuration.retryPolicy.retryableErrors.append(.timeout(.read))
        printsJSON = arguments.has("json")
        showsProgress = !arguments.has("quiet") && Console.isLive
    }

    /// A file, as the command line asks for it.
    private static func request(_ url: String, _ arguments: ParsedArguments) throws -> HTTPRequest<Response> {
        let asked = try FetchRequest(url: url, arguments)
        var request = HTTPRequest(.get, asked.path, headers: asked.headers)
        request.authorization = asked.authorization
        request.timeouts = asked.timeouts
        request.deadline = asked.deadline
        return request
    }

    /// What is a directory, or is written like one.
    private static func target(_ path: String) -> DownloadTarget {
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        return isDirectory || path.hasSuffix("/") ? .directory(path) : .file(path)
    }
}

/// What a file is called on the board.
enum FileName {
    /// The target's name, or the end of the URL's path.
    static func of(_ url: String, _ target: DownloadTarget) -> String {
        let path =
            switch target {
            case .file(let path): path
            case .directory: String(url.prefix { $0 != "?" && $0 != "#" })
            }
        return path.split(separator: "/").last.map(String.init) ?? path
    }
}

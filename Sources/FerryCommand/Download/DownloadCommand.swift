internal import Ferry
internal import FerryMeasurement

/// `ferry download`: files, several at once, each gone on with where an earlier run ended.
enum DownloadCommand: Subcommand {
    static let name = "download"
    static let summary = "Downloads files, and goes on with what is there of them"
    static let synopsis = "URL... [OPTIONS]"
    static let notes = """
        A file is loaded beside its place, as NAME.ferry-part, and takes it when it is whole. Run again, ferry asks
        for what is missing, if the file is still the same. The first ctrl-C keeps what is there and says how much.
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
        _ waiting: inout ArraySlice<FileRequest>, _ order: DownloadOrder, _ agent: NetworkAgent,
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

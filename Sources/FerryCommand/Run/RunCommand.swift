internal import Ferry
internal import FerryMeasurement
internal import FerryTesting

/// `ferry run`: batches and chains of requests from files.
enum RunCommand: Subcommand {
    static let name = "run"
    static let summary = "Run plans: batches and chains of requests from files"
    static let synopsis = "PLAN.json… [OPTIONS]"
    static let optionGroups = [
        OptionGroup(
            [
                CommandOption("base", value: "URL", "Base URL of the paths, instead of the plan's"),
                CommandOption("serve", "Start a server and use it as the base"),
                CommandOption(
                    "var", value: "N=V", "Set a variable; it stays a number or true/false if it is one in the plan"),
                EngineOption.option,
            ] + HTTPCacheOption.options + [
                CommandOption("dry-run", "Print what would be done"),
                CommandOption("html", value: "FILE", "Write an HTML page with the waterfall of the run"),
                CommandOption("har", value: "FILE", "Write at most 10,000 exchanges to FILE in HAR 1.2, redacted"),
                CommandOption("json", "Print one JSON object per plan instead of the table"),
            ])
    ]
    static let notes = """
        The manual's article "Plans" describes the format. Several plans run one after another.
        The first ctrl-C cancels the active requests and prints the results so far. With --json, plans after that one
        are printed, too, with all their steps skipped.
        """

    static let operands = CommandOperands.files

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if arguments.operands.isEmpty { throw UsageError("no plan given") }
        if arguments.has("base") && arguments.has("serve") { throw UsageError("--base and --serve cannot be combined") }
        for other in ["json", "html", "har"] where arguments.has("dry-run") && arguments.has(other) {
            throw UsageError("--dry-run and --\(other) cannot be combined: nothing is run")
        }
        let (starts, output) = try prepared(arguments)
        if arguments.has("dry-run") {
            for start in starts { Console.out(PlanOutline(start.plan).text) }
            return .success
        }
        let (reports, wasInterrupted) = try await interruptible {
            if !arguments.has("serve") { return await perform(starts, arguments) }
            return try await withLoopbackServer { server in
                await perform(starts.map { $0.based(on: server.baseURL) }, arguments)
            }
        }
        let code = wasInterrupted ? .interrupted : reports.map(\.exitCode).first { $0 != .success } ?? .success
        return output.write(reports, after: code)
    }

    /// All plans are read and prepared before the first one runs, so that a mistake in the last is found early.
    private static func prepared(_ arguments: ParsedArguments) throws -> (starts: [PlanStart], output: PlanOutput) {
        let values = try arguments.pairs("var")
        let base = try arguments.base("base")
        let plans = try arguments.operands.map { try PlanReader.plan(at: $0) }
        let engine = try EngineOption.engine(arguments)
        let output = try PlanOutput(arguments)
        let starts = try plans.map { plan in
            var start =
                if let base {
                    try PlanStart(plan, values: values, base: base)
                } else {
                    try PlanStart(plan, values: values, hasOtherBase: arguments.has("serve"))
                }
            if let engine { start = start.carried(by: engine) }
            if let recorder = output.recorder { start = start.recorded(by: recorder) }
            return try start.cached(arguments)
        }
        try PlanStart.checkNames(values, of: plans)
        if !arguments.has("serve") {
            for start in starts { try start.checkBase(isRequired: !arguments.has("dry-run")) }
        }
        return (starts, output)
    }

    private static func perform(_ starts: [PlanStart], _ arguments: ParsedArguments) async -> [PlanReport] {
        var reports: [PlanReport] = []
        for start in starts {
            if Task.isCancelled {
                // An object for each plan; a table would only repeat the plan.
                if arguments.has("json") { Console.out(PlanRun(start).cancelled.json + "\n") }
                continue
            }
            let report = await perform(start)
            Console.out(arguments.has("json") ? report.json + "\n" : report.table(columns: Console.tableColumns))
            reports.append(report)
        }
        return reports
    }

    private static func perform(_ start: PlanStart) async -> PlanReport {
        let run = PlanRun(start)
        return await withNetworkAgent(configuration: start.configuration, grace: .zero) { agent in
            await withTaskGroup(of: Void.self) { group in
                if Console.isLive { group.addTask { await PlanLiveLine(run).show() } }
                let report = await run.perform(by: agent)
                group.cancelAll()
                await group.waitForAll()
                return report
            }
        }
    }
}

/// The output files of `ferry run`.
struct PlanOutput: Sendable {
    private let pagePath: String?
    private let archivePath: String?
    /// The exchanges; `nil` if they are not recorded.
    let recorder: Recorder?

    /// Throws if it is known that one of them cannot be written.
    init(_ arguments: ParsedArguments) throws {
        pagePath = try arguments.last("html").map { try OutputFile.checked($0, of: "html") }
        archivePath = try arguments.last("har").map { try OutputFile.checked($0, of: "har") }
        recorder = archivePath.map { _ in Recorder() }
    }

    /// Writes the files. The result of the plans takes precedence over a file that could not be written.
    func write(_ reports: [PlanReport], after code: ExitCode) -> ExitCode {
        var code = code
        func tell(_ write: () throws(InputError) -> Void) {
            do throws(InputError) {
                try write()
            } catch {
                Console.error("ferry run: \(Main.oneLine(error.message))\n")
                if code == .success { code = .transferFailed }
            }
        }
        if let pagePath {
            tell { () throws(InputError) in try OutputFile.write(PlanPage(reports).html, to: pagePath) }
        }
        if let archivePath, let recorder {
            if let shortage = recorder.shortage { Console.error("ferry run: \(shortage)\n") }
            tell { () throws(InputError) in
                guard let data = try? recorder.archive.json() else {
                    throw InputError("cannot write \(archivePath): the exchanges cannot be encoded as JSON")
                }
                try OutputFile.write(String(decoding: data, as: UTF8.self), to: archivePath)
            }
        }
        return code
    }
}

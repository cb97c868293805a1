internal import Ferry
internal import FerryMeasurement
internal import FerryTesting

/// `ferry run`: batches and chains of requests from files.
enum RunCommand: Subcommand {
    static let name = "run"
    static let summary = "Runs plans: batches and chains of requests from files"
    static let synopsis = "PLAN.json… [OPTIONS]"
    static let optionGroups = [
        OptionGroup(
            [
                CommandOption("base", value: "URL", "What paths are joined to, in place of the plan's"),
                CommandOption("serve", "Starts a server of its own to be the base"),
                CommandOption("var", value: "N=V", "A variable, in place of the plan's; may be repeated"),
                EngineOption.option,
            ] + HTTPCacheOption.options + [
                CommandOption("dry-run", "Prints what would be done"),
                CommandOption("html", value: "FILE", "Writes a page with the waterfall of the run"),
                CommandOption("har", value: "FILE", "Writes what was exchanged, in the format HAR 1.2"),
                CommandOption("json", "Prints one object a plan in place of the table"),
            ])
    ]
    static let notes = """
        The manual's article "Plans" tells what stands in a plan. Several plans run one after another.
        The first ctrl-C cancels what runs and prints what there is.
        """

    static let operands = CommandOperands.files

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if arguments.operands.isEmpty { throw UsageError("a plan is needed") }
        if arguments.has("base") && arguments.has("serve") { throw UsageError("--base and --serve exclude each other") }
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

    /// All are read and made ready before the first runs: a mistake in the last shall not come late.
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
        if !arguments.has("serve") && !arguments.has("dry-run") {
            for start in starts { try start.checkBase() }
        }
        return (starts, output)
    }

    private static func perform(_ starts: [PlanStart], _ arguments: ParsedArguments) async -> [PlanReport] {
        var reports: [PlanReport] = []
        for start in starts where !Task.isCancelled {
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

/// The files that `ferry run` writes.
struct PlanOutput: Sendable {
    private let pagePath: String?
    private let archivePath: String?
    /// What was exchanged; `nil` where nobody wants it.
    let recorder: Recorder?

    /// Throws where it is known that one of them cannot be written.
    init(_ arguments: ParsedArguments) throws(InputError) {
        pagePath = arguments.last("html")
        archivePath = arguments.last("har")
        for path in [pagePath, archivePath] { if let path { try OutputFile.check(path) } }
        recorder = archivePath.map { _ in Recorder() }
    }

    /// Writes them. How the plans went counts for the exit code, before a file that could not be written.
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
            tell { () throws(InputError) in
                guard let data = try? recorder.archive.json() else {
                    throw InputError("cannot write \(archivePath): what was exchanged is no JSON")
                }
                try OutputFile.write(String(decoding: data, as: UTF8.self), to: archivePath)
            }
        }
        return code
    }
}

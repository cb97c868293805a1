internal import Ferry
internal import FerryMeasurement
internal import FerryTesting
internal import FoundationEssentials

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
        // All are read and made ready before the first runs: a mistake in the last shall not come late.
        let values = try arguments.pairs("var")
        let base = try arguments.base("base")
        let plans = try arguments.operands.map { try PlanReader.plan(at: $0) }
        let engine = try EngineOption.engine(arguments)
        let starts = try plans.map { plan in
            let start =
                if let base {
                    try PlanStart(plan, values: values, base: base)
                } else {
                    try PlanStart(plan, values: values, hasOtherBase: arguments.has("serve"))
                }
            return try (engine.map { start.carried(by: $0) } ?? start).cached(arguments)
        }
        if arguments.has("dry-run") {
            for plan in plans { Console.out(PlanOutline(plan).text) }
            return .success
        }
        let (reports, wasInterrupted) = try await interruptible {
            if !arguments.has("serve") { return await perform(starts, arguments) }
            return try await withLoopbackServer { server in
                await perform(starts.map { $0.based(on: server.baseURL) }, arguments)
            }
        }
        if let path = arguments.last("html") {
            do {
                try Data(PlanPage(reports).html.utf8).write(to: URL(filePath: path))
            } catch {
                throw InputError("\(path): cannot be written")
            }
        }
        if wasInterrupted { return .interrupted }
        return reports.map(\.exitCode).first { $0 != .success } ?? .success
    }

    private static func perform(_ starts: [PlanStart], _ arguments: ParsedArguments) async -> [PlanReport] {
        var reports: [PlanReport] = []
        for start in starts where !Task.isCancelled {
            let report = await perform(start)
            Console.out(arguments.has("json") ? report.json + "\n" : report.table)
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

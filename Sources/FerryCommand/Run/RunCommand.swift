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
        OptionGroup([
            CommandOption("base", value: "URL", "What paths are joined to, in place of the plan's"),
            CommandOption("serve", "Starts a server of its own to be the base"),
            CommandOption("var", value: "N=V", "A variable, in place of the plan's; may be repeated"),
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
        // All are read before the first runs: a mistake in the last shall not come late.
        let plans = try arguments.operands.map { try PlanReader.plan(at: $0) }
        if arguments.has("dry-run") {
            for plan in plans { Console.out(PlanOutline(plan).text) }
            return .success
        }
        let values = try arguments.pairs("var")
        let (reports, wasInterrupted) = try await interruptible {
            if !arguments.has("serve") {
                return try await perform(plans, values, base: arguments.last("base"), arguments)
            }
            return try await withLoopbackServer { server in
                try await perform(plans, values, base: server.baseURL, arguments)
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

    private static func perform(
        _ plans: [Plan], _ values: [(name: String, value: String)], base: String?, _ arguments: ParsedArguments
    ) async throws -> [PlanReport] {
        var reports: [PlanReport] = []
        for plan in plans where !Task.isCancelled {
            let report = try await perform(plan, values, base: base)
            Console.out(arguments.has("json") ? report.json + "\n" : report.table)
            reports.append(report)
        }
        return reports
    }

    private static func perform(
        _ plan: Plan, _ values: [(name: String, value: String)], base: String?
    ) async throws -> PlanReport {
        do {
            let run = try PlanRun(plan, values: values)
            let configuration = try PlanRun.configuration(for: plan, values: values, base: base)
            return await withNetworkAgent(configuration: configuration, grace: .zero) { agent in
                await withTaskGroup(of: PlanReport?.self) { group in
                    if Console.isLive {
                        group.addTask {
                            await PlanLiveLine(run).show()
                            return nil
                        }
                    }
                    let report = await run.perform(by: agent)
                    group.cancelAll()
                    await group.waitForAll()
                    return report
                }
            }
        } catch {
            throw InputError("\(plan.name): \(error)")
        }
    }
}

internal import Ferry
internal import FerryMeasurement
internal import FerryTesting

/// `ferry tour`: shows each feature against a built-in server, usually in one line each.
enum TourCommand: Subcommand {
    static let name = "tour"
    static let summary = "Show each feature against a built-in server"
    static let synopsis = "[OPTIONS]"
    static let optionGroups = [OptionGroup([CommandOption("json", "Print one JSON object instead of the lines")])]

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let operand = arguments.operands.first { throw UsageError("unexpected '\(operand)'") }
        // It uses the engine of the environment, which is checked here.
        _ = try EngineOption.engine(arguments)
        let printsJSON = arguments.has("json")
        let (results, wasInterrupted) = try await interruptible { try await perform(printsJSON) }
        if printsJSON { Console.out(json(results)) }
        if wasInterrupted { return .interrupted }
        return results.allSatisfy(\.ok) ? .success : .validationFailed
    }

    private static func perform(_ isQuiet: Bool) async throws -> [TourResult] {
        try await withLoopbackServer { server in
            TourStep.prepare(server)
            return await withNetworkAgent(configuration: .init(baseURL: server.baseURL), grace: .zero) { agent in
                var results: [TourResult] = []
                for step in TourStep.all where !Task.isCancelled && !Console.hasOutputEnded {
                    let result = await step.result(agent)
                    if !isQuiet { Console.out(text(result, columns: Console.outColumns)) }
                    results.append(result)
                }
                return results
            }
        }
    }

    /// One line for a result, or several if it is too long for `columns`.
    static func text(_ result: TourResult, columns: Int) -> String {
        let mark = result.ok ? "ok  " : "FAIL"
        let name = result.name.padded(to: nameWidth, gap: 1)
        let time = "(\(durationText(nanoseconds: result.nanoseconds)))"
        let room = columns - nameWidth - 6
        var lines = TerminalText.filled(Main.oneLine(result.detail), to: room)
        // The time keeps its number and its unit together.
        if let last = lines.last, TerminalText.width(last) + 2 + TerminalText.width(time) <= room {
            lines[lines.count - 1] = "\(last)  \(time)"
        } else {
            lines.append(time)
        }
        let start = "\(mark)  \(Console.bold(name))"
        return start + lines.joined(separator: "\n" + blanks(nameWidth + 6)) + "\n"
    }

    private static let nameWidth = 21

    private static func json(_ results: [TourResult]) -> String {
        struct Report: Encodable {
            var ok: Bool
            var steps: [TourResult]
        }
        return jsonLine(Report(ok: results.allSatisfy(\.ok), steps: results)) + "\n"
    }
}

/// The result of one step.
struct TourResult: Sendable, Encodable {
    var name: String
    var ok: Bool
    var detail: String
    var nanoseconds: UInt64
}

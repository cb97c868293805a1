internal import Dispatch
internal import Ferry
internal import Glibc
internal import Synchronization

/// The command line: subcommands, help, and what is said of what is wrong with it.
enum Main {
    static let version = "0.1.0"
    static let summary = "an HTTP client for the command line"
    static var subcommands: [any Subcommand.Type] {
        [
            FetchCommand.self, DownloadCommand.self, RunCommand.self, ServeCommand.self, BenchCommand.self,
            TourCommand.self, HelpCommand.self, CompletionsCommand.self,
        ]
    }

    /// Finds the subcommand, parses its options and runs it; what is wrong becomes one line on stderr.
    static func run(_ arguments: [String]) async -> ExitCode {
        let code = await find(arguments)
        guard let fault = Console.outputFault else { return code }
        // A file with the beginning of an answer must not pass for the answer.
        Console.error("ferry: standard output: \(fault)\n")
        return code == .success ? .transferFailed : code
    }

    private static func find(_ arguments: [String]) async -> ExitCode {
        guard let first = arguments.first else {
            // Somebody who does not know what to type; a script that forgot to say it must still fail.
            Console.error(help(columns: max(Console.size.columns, Console.usualColumns)))
            return .usage
        }
        switch first {
        case "--help", "-h":
            Console.out(help(columns: Console.outColumns))
            return .success
        case "--version":
            Console.out("ferry \(version)\n")
            return .success
        default:
            break
        }
        guard let command = subcommands.first(where: { $0.name == first }) else {
            let kind = first.hasPrefix("-") ? "option" : "subcommand"
            let suggestion = Suggestion.text(for: first, in: subcommands.map { $0.name })
            Console.error("ferry: unknown \(kind) \(oneLine(first))\(suggestion) (see ferry --help)\n")
            return .usage
        }
        return await run(command, Array(arguments.dropFirst()))
    }

    private static func run(_ command: any Subcommand.Type, _ arguments: [String]) async -> ExitCode {
        do {
            let parsed = try ParsedArguments(arguments, of: command.allOptions)
            if parsed.has("help") {
                Console.out(command.help(columns: Console.outColumns))
                return .success
            }
            return try await command.run(parsed)
        } catch let error as UsageError {
            Console.error("ferry \(command.name): \(oneLine(error.message)) (see ferry \(command.name) --help)\n")
            return .usage
        } catch let error as InputError {
            Console.error("ferry \(command.name): \(oneLine(error.message))\n")
            return .badInput
        } catch {
            Console.error("ferry \(command.name): \(oneLine("\(error)"))\n")
            return .transferFailed
        }
    }

    /// What the user typed and what a server sent is quoted in messages, and may hold anything: it must not command the
    /// terminal, end the line, or turn the direction of what follows.
    static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.commandsTerminals ? "?" : $0 }))
    }

    /// The help for a terminal of the usual width, or for none.
    static var help: String { help(columns: Console.usualColumns) }

    static func help(columns: Int) -> String {
        var text = "Usage: ferry SUBCOMMAND [OPTIONS]\n\n\(summary.prefix(1).uppercased())\(summary.dropFirst()).\n\n"
        let width = (subcommands.map { $0.name.count }.max() ?? 0) + 2
        for command in subcommands {
            text += "  " + command.name.padded(to: width) + command.summary + "\n"
        }
        let codes = ExitCode.allCases.map { "\($0.rawValue) \($0.meaning)" }.joined(separator: ", ")
        let notes = """

            Run ferry SUBCOMMAND --help for the options of a subcommand, and ferry --version for the version.

            Exit codes: \(codes).
            """
        return text + TerminalText.filledParagraphs(notes, to: columns) + "\n"
    }
}

/// Runs `operation` and cancels its task at the first ctrl-C, so that it can end with what it has; a second one ends
/// the process at once, and so does standard output that takes nothing more.
func interruptible<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> (value: Value, wasInterrupted: Bool) {
    let flag = InterruptionFlag()
    let task = Task { try await operation() }
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
        if flag.raise() { _exit(ExitCode.interrupted.rawValue) }
        task.cancel()
        Console.endsIfStuck(.interrupted)
    }
    source.resume()
    defer {
        source.cancel()
        signal(SIGINT, SIG_DFL)
    }
    let value = try await task.value
    return (value, flag.isRaised)
}

/// Whether something has happened: ctrl-C was pressed, an exchange is over.
final class InterruptionFlag: Sendable {
    private let raised = Atomic(false)

    var isRaised: Bool { raised.load(ordering: .relaxed) }

    /// Returns whether it was raised before.
    func raise() -> Bool { raised.exchange(true, ordering: .relaxed) }
}

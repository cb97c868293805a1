internal import Dispatch
internal import Ferry
internal import FerrySynchronization
internal import Glibc

/// The command line: subcommands, help, and error messages.
enum Main {
    static let version = "0.1.0"
    static let summary = "an HTTP client for the command line"
    static var subcommands: [any Subcommand.Type] {
        [
            FetchCommand.self, DownloadCommand.self, RunCommand.self, ServeCommand.self, BenchCommand.self,
            TourCommand.self, HelpCommand.self, CompletionsCommand.self,
        ]
    }

    /// Finds the subcommand, parses its options and runs it. An error becomes one line on stderr.
    static func run(_ arguments: [String]) async -> ExitCode {
        let end = await find(arguments)
        let code = end == .interrupted && InterruptionFlag.termination.isRaised ? .terminated : end
        guard let fault = Console.outputFault else { return code }
        // A file with the beginning of a response must not look complete.
        Console.error("ferry: standard output: \(fault)\n")
        return code == .success ? .transferFailed : code
    }

    private static func find(_ arguments: [String]) async -> ExitCode {
        guard let first = arguments.first else {
            // Help for a user who does not know what to type; a script that forgot the subcommand must still fail.
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

    /// Messages quote user input and server data, which may contain anything: it must not control the terminal, end the
    /// line, or change the direction of the following text.
    static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.commandsTerminals ? "?" : $0 }))
    }

    /// The help for a terminal of the usual width.
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

/// Runs `operation` and cancels its task at the first ctrl-C or SIGTERM, so that it can end with its results so far and
/// remove its files. A second signal ends the process at once, and so does output that is blocked. A SIGTERM directly
/// after the first signal is the same one: timeout(1) sends it to the process and to its group. A signal that the
/// parent has ignored stays ignored.
func interruptible<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> (value: Value, wasInterrupted: Bool) {
    let flag = InterruptionFlag()
    let firstTime = Mutex<ContinuousClock.Instant?>(nil)
    let signals = InterruptionFlag.signals.filter { !InterruptionFlag.ignored.contains($0) }
    let (handled, ready) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
        // What it prints may make somebody send a signal.
        for await _ in handled.prefix(signals.count) {}
        return try await operation()
    }
    let sources = signals.map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler {
            if number == SIGTERM { _ = InterruptionFlag.termination.raise() }
            let code = number == SIGTERM ? ExitCode.terminated : .interrupted
            let since = firstTime.withLock { first in
                defer { first = first ?? .now }
                return first?.duration(to: .now)
            }
            if let since {
                if number == SIGTERM && since < .milliseconds(500) { return }
                _exit(code.rawValue)
            }
            _ = flag.raise()
            task.cancel()
            Console.endsIfStuck(code)
        }
        source.setRegistrationHandler { ready.yield() }
        source.resume()
        return source
    }
    defer {
        for source in sources { source.cancel() }
        for number in signals { signal(number, SIG_DFL) }
    }
    let value = try await task.value
    return (value, flag.isRaised)
}

/// A flag: ctrl-C was pressed, or an exchange has ended.
final class InterruptionFlag: Sendable {
    /// SIGTERM asked the process to end.
    static let termination = InterruptionFlag()

    /// The signals that interrupt a command.
    static let signals = [SIGINT, SIGTERM]

    /// Those of them that the parent has ignored, as a shell does for a command in the background. Read once, at the
    /// start of the process: later it may be `interruptible` that ignores them.
    static let ignored = signals.filter { number in
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private let raised = Atomic(false)

    var isRaised: Bool { raised.load(ordering: .relaxed) }

    /// Returns whether it was already raised.
    func raise() -> Bool { raised.exchange(true, ordering: .relaxed) }
}

/// `ferry help`: the text of `--help`, and the manual page.
enum HelpCommand: Subcommand {
    static let name = "help"
    static let summary = "Print help for the command or a subcommand"
    static let synopsis = "[SUBCOMMAND] [OPTIONS]"
    static let optionGroups = [
        OptionGroup([CommandOption("man", "Print the manual page in the format of man(1)")])
    ]
    static let notes = """
        To install the manual page:
          ferry help --man > ~/.local/share/man/man1/ferry.1
        """
    static var operands: CommandOperands { .words(Main.subcommands.map { $0.name }) }

    static func run(_ arguments: ParsedArguments) throws -> ExitCode {
        if arguments.operands.count > 1 {
            throw UsageError("expected one subcommand, found also '\(arguments.operands[1])'")
        }
        if arguments.has("man") {
            if let operand = arguments.operands.first { throw UsageError("--man and '\(operand)' cannot be combined") }
            Console.out(ManualPage(of: Main.subcommands).text)
        } else if let name = arguments.operands.first {
            guard let command = Main.subcommands.first(where: { $0.name == name }) else {
                throw UsageError("unknown subcommand '\(name)'")
            }
            Console.out(command.help(columns: Console.outColumns))
        } else {
            Console.out(Main.help(columns: Console.outColumns))
        }
        return .success
    }
}

/// `ferry completions`: completion scripts for shells.
enum CompletionsCommand: Subcommand {
    static let name = "completions"
    static let summary = "Print a completion script for a shell"
    static let synopsis = "bash|zsh|fish"
    static let optionGroups = [OptionGroup([])]
    static let notes = """
        To install the completions:
          ferry completions bash > ~/.local/share/bash-completion/completions/ferry
          ferry completions zsh > FOLDER/_ferry     (one of $fpath)
          ferry completions fish > ~/.config/fish/completions/ferry.fish
        """
    static let operands = CommandOperands.words(["bash", "zsh", "fish"])

    static func run(_ arguments: ParsedArguments) throws -> ExitCode {
        guard let shell = arguments.operands.first, arguments.operands.count == 1 else {
            throw UsageError("expected a shell: bash, zsh or fish")
        }
        switch shell {
        case "bash": Console.out(BashCompletions(of: Main.subcommands).text)
        case "zsh": Console.out(ZshCompletions(of: Main.subcommands).text)
        case "fish": Console.out(FishCompletions(of: Main.subcommands).text)
        default: throw UsageError("unknown shell '\(shell)'; supported are bash, zsh and fish")
        }
        return .success
    }
}

/// The possible operands, or values of an option, for completion.
enum CommandOperands: Sendable, Equatable {
    /// Unknown, like a URL.
    case unknown
    case files
    /// Files after an `@`, as in `@FILE` and `K=@FILE`; anything else is unknown.
    case filesAfterAt
    case folders
    case words([String])
}

extension CommandOption {
    /// The possible values; `nil` if it takes none. An optional value follows an equals sign.
    var operands: CommandOperands? {
        guard let value else { return nil }
        if !words.isEmpty { return .words(words) }
        switch value {
        case "FILE", "FILE|DIR": return .files
        case "FOLDER": return .folders
        case let value where value.hasSuffix("@FILE"): return .filesAfterAt
        default: return .unknown
        }
    }

    /// As typed.
    var spellings: [String] { (letter.map { ["-\($0)"] } ?? []) + ["--\(name)"] }
}

/// `ferry completions`: scripts by which shells complete what is typed.
enum CompletionsCommand: Subcommand {
    static let name = "completions"
    static let summary = "Prints a shell script that completes subcommands and options"
    static let synopsis = "bash|zsh|fish"
    static let optionGroups = [OptionGroup([])]
    static let notes = """
        Each shell has a folder for it:
          ferry completions bash > ~/.local/share/bash-completion/completions/ferry
          ferry completions zsh > FOLDER/_ferry     (one of $fpath)
          ferry completions fish > ~/.config/fish/completions/ferry.fish
        """
    static let operands = CommandOperands.words(["bash", "zsh", "fish"])

    static func run(_ arguments: ParsedArguments) throws -> ExitCode {
        guard let shell = arguments.operands.first, arguments.operands.count == 1 else {
            throw UsageError("one shell is wanted: bash, zsh or fish")
        }
        switch shell {
        case "bash": Console.out(BashCompletions(of: Main.subcommands).text)
        case "zsh": Console.out(ZshCompletions(of: Main.subcommands).text)
        case "fish": Console.out(FishCompletions(of: Main.subcommands).text)
        default: throw UsageError("bash, zsh and fish are known, not '\(shell)'")
        }
        return .success
    }
}

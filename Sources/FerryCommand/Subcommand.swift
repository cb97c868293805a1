/// One of the things the command does.
protocol Subcommand {
    static var name: String { get }
    /// One line for the list of subcommands.
    static var summary: String { get }
    /// What follows the name in the usage line.
    static var synopsis: String { get }
    static var options: [CommandOption] { get }
    /// Further lines of the help.
    static var notes: String { get }

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode
}

extension Subcommand {
    static var notes: String { "" }

    /// `--help` is everywhere.
    static var allOptions: [CommandOption] {
        options + [CommandOption("help", "h", "Prints this")]
    }

    static var help: String {
        let left = allOptions.map { option in
            let letter = option.letter.map { "-\($0), " } ?? "    "
            return letter + "--\(option.name)" + (option.value.map { " \($0)" } ?? "")
        }
        let width = (left.map(\.count).max() ?? 0) + 2
        var text = "Usage: ferry \(name) \(synopsis)\n\n\(summary).\n\n"
        for (option, left) in zip(allOptions, left) {
            text += "  " + left + String(repeating: " ", count: width - left.count) + option.help + "\n"
        }
        if !notes.isEmpty { text += "\n\(notes)\n" }
        return text
    }
}

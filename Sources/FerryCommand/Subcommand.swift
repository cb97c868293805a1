/// A subcommand.
protocol Subcommand {
    static var name: String { get }
    /// One line for the list of subcommands.
    static var summary: String { get }
    /// The text after the name in the usage line.
    static var synopsis: String { get }
    /// The groups of options, in the order of the help.
    static var optionGroups: [OptionGroup] { get }
    /// Further text of the help.
    static var notes: String { get }
    /// The possible operands, for completion.
    static var operands: CommandOperands { get }

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode
}

extension Subcommand {
    static var notes: String { "" }
    static var operands: CommandOperands { .unknown }

    static var allOptions: [CommandOption] { allGroups.flatMap(\.options) }

    /// `--help` is always the last option.
    static var allGroups: [OptionGroup] {
        var groups = optionGroups
        groups[groups.count - 1].options.append(CommandOption("help", "h", "Print this help"))
        return groups
    }

    /// The help for a terminal of the usual width.
    static var help: String { help(columns: Console.usualColumns) }

    /// No line is longer than `columns`, which is at least the usual width.
    static func help(columns: Int) -> String {
        let width = (allOptions.map(\.synopsis.count).max() ?? 0) + 4
        var text = "Usage: ferry \(name) \(synopsis)\n\n\(summary).\n"
        for group in allGroups {
            text += group.title.isEmpty ? "\n" : "\n\(group.title):\n"
            for option in group.options {
                var left = "  " + option.synopsis
                for line in TerminalText.filled(option.help, to: columns - width) {
                    text += left.padded(to: width) + line + "\n"
                    left = ""
                }
            }
        }
        if !notes.isEmpty { text += "\n\(TerminalText.filledParagraphs(notes, to: columns))\n" }
        return text
    }
}

/// A group of options.
struct OptionGroup: Sendable {
    /// Empty if there is only one group.
    var title: String
    var options: [CommandOption]

    init(_ title: String, _ options: [CommandOption]) {
        self.title = title
        self.options = options
    }

    /// The only group.
    init(_ options: [CommandOption]) { self.init("", options) }
}

extension CommandOption {
    /// The option as written, with a word for its value.
    fileprivate var synopsis: String {
        let letter = letter.map { "-\($0), " } ?? "    "
        return letter + "--\(name)" + valueText
    }
}

/// One option of a subcommand.
struct CommandOption: Sendable {
    /// The name without dashes.
    var name: String
    var letter: Character?
    /// The word for its value in the help; `nil` if it takes none.
    var value: String?
    /// All possible values; empty if there is no short list.
    var words: [String]
    /// Whether the value is optional; it then follows an equals sign.
    var isValueOptional = false
    var help: String

    init(_ name: String, optionalValue: String, _ help: String) {
        self.init(name, nil, value: optionalValue, help)
        isValueOptional = true
    }

    init(_ name: String, _ help: String) {
        self.init(name, nil, help)
    }

    init(
        _ name: String, _ letter: Character? = nil, value: String? = nil, words: [String] = [], _ help: String
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.words = words
        self.help = help
    }
}

extension CommandOption {
    /// The text after its name in the help: ` FILE`, `[=FILE]` or empty.
    var valueText: String { value.map { isValueOptional ? "[=\($0)]" : " \($0)" } ?? "" }
}

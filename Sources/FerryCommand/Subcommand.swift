/// One of the things the command does.
protocol Subcommand {
    static var name: String { get }
    /// One line for the list of subcommands.
    static var summary: String { get }
    /// What follows the name in the usage line.
    static var synopsis: String { get }
    /// In the groups in which the help shows them.
    static var optionGroups: [OptionGroup] { get }
    /// Further lines of the help.
    static var notes: String { get }
    /// What stands where no option does, as far as it can be completed.
    static var operands: CommandOperands { get }

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode
}

extension Subcommand {
    static var notes: String { "" }
    static var operands: CommandOperands { .unknown }

    static var allOptions: [CommandOption] { allGroups.flatMap(\.options) }

    /// `--help` is everywhere, at the end.
    static var allGroups: [OptionGroup] {
        var groups = optionGroups
        groups[groups.count - 1].options.append(CommandOption("help", "h", "Print this help"))
        return groups
    }

    /// The help for a terminal of the usual width, or for none.
    static var help: String { help(columns: Console.usualColumns) }

    /// No line of it is longer than `columns`, which are at least the usual ones.
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

/// Options that belong together.
struct OptionGroup: Sendable {
    /// Empty where there is one group only.
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
    /// How it is written, with what stands for its value.
    fileprivate var synopsis: String {
        let letter = letter.map { "-\($0), " } ?? "    "
        return letter + "--\(name)" + valueText
    }
}

/// One option of a subcommand.
struct CommandOption: Sendable {
    /// Without the dashes.
    var name: String
    var letter: Character?
    /// What stands for its value in the help; `nil` when it takes none.
    var value: String?
    /// All that its value may be; empty where that is not so few.
    var words: [String]
    /// Whether it may stand alone; a value then follows an equals sign.
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
    /// What follows its name in the help: ` FILE`, `[=FILE]` or nothing.
    var valueText: String { value.map { isValueOptional ? "[=\($0)]" : " \($0)" } ?? "" }
}

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

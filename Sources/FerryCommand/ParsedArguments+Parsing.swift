@preconcurrency internal import Cgetopt
internal import Glibc
internal import Synchronization

extension ParsedArguments {
    /// `getopt_long` works on globals, and tests parse side by side.
    private static let turn = Mutex(())
    /// Values of options without a letter begin above all the letters.
    private static let firstNumber: Int32 = 1000

    /// Parses what follows the subcommand's name.
    init(_ arguments: [String], of options: [CommandOption]) throws(UsageError) {
        let options = options
        let result = Self.turn.withLock { _ in Result { () throws(UsageError) in try Self.parse(arguments, options) } }
        self = try result.get()
    }

    private static func parse(_ arguments: [String], _ options: [CommandOption]) throws(UsageError) -> ParsedArguments {
        var argv = (["ferry"] + arguments).map { strdup($0) } + [nil]
        let names = options.map { strdup($0.name) }
        defer { for text in argv + names { free(text) } }
        var table = zip(options, names).enumerated().map { index, pair in
            option(
                name: UnsafePointer(pair.1), has_arg: pair.0.argumentKind, flag: nil, val: firstNumber + Int32(index))
        }
        table.append(option())
        // The colon in front asks for ':' when a value is missing.
        var letters = ":"
        for option in options {
            guard let letter = option.letter else { continue }
            letters.append(letter)
            if option.value != nil { letters.append(":") }
        }

        var parsed = ParsedArguments()
        // 0, not 1, is glibc's way to begin anew.
        optind = 0
        opterr = 0
        while true {
            let found = getopt_long(Int32(argv.count - 1), &argv, letters, &table, nil)
            if found == -1 { break }
            if found == Int32(UInt8(ascii: "?")) || found == Int32(UInt8(ascii: ":")) {
                let word = argv[max(1, Int(optind) - 1)].map { String(cString: $0) } ?? ""
                throw complaint(missingValue: found == Int32(UInt8(ascii: ":")), number: optopt, word: word, options)
            }
            guard let option = described(by: found, options) else { continue }
            parsed.options.append((option.name, optarg.map { String(cString: $0) } ?? ""))
        }
        for index in Int(optind)..<(argv.count - 1) {
            if let operand = argv[index] { parsed.operands.append(String(cString: operand)) }
        }
        return parsed
    }

    private static func described(by number: Int32, _ options: [CommandOption]) -> CommandOption? {
        if number >= firstNumber { return options[Int(number - firstNumber)] }
        guard let byte = UInt8(exactly: number) else { return nil }
        return options.first { $0.letter == Character(UnicodeScalar(byte)) }
    }

    private static func complaint(
        missingValue: Bool, number: Int32, word: String, _ options: [CommandOption]
    ) -> UsageError {
        let known = described(by: number, options)
        let letter = UInt8(exactly: number).map { "-\(Character(UnicodeScalar($0)))" }
        let shown = (number >= firstNumber ? known.map { "--\($0.name)" } : letter) ?? word
        if missingValue { return UsageError("option \(shown) needs a value") }
        if known != nil { return UsageError("option \(shown) takes no value") }
        // getopt_long names an unknown letter, but not an unknown word.
        guard number == 0 else { return UsageError("unknown option \(shown)") }
        let name = String(word.prefix { $0 != "=" })
        return UsageError("unknown option \(word)\(Suggestion.text(for: name, in: options.map { "--" + $0.name }))")
    }
}

extension CommandOption {
    /// As getopt_long(3) is told.
    fileprivate var argumentKind: Int32 {
        if value == nil { return no_argument }
        return isValueOptional ? optional_argument : required_argument
    }
}

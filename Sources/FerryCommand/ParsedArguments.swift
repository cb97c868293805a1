@preconcurrency internal import Cgetopt
internal import FerrySynchronization
internal import Glibc

/// The options and operands of one command line, in the order given.
struct ParsedArguments: Sendable {
    var options: [(name: String, value: String)] = []
    var operands: [String] = []

    func has(_ name: String) -> Bool {
        options.contains { $0.name == name }
    }

    /// All values of an option that may be repeated.
    func all(_ name: String) -> [String] {
        options.filter { $0.name == name }.map(\.value)
    }

    /// The value of an option; the last one is used, so that an alias can be overridden.
    func last(_ name: String) -> String? {
        options.last { $0.name == name }?.value
    }
}

extension ParsedArguments {
    /// `getopt_long` uses global state, and tests parse in parallel.
    private static let turn = Mutex(())
    /// The numbers of options without a letter begin above all letters.
    private static let firstNumber: Int32 = 1000
    /// What getopt returns for an operand.
    private static let operand: Int32 = 1

    /// Parses the arguments after the subcommand.
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
        // The hyphen makes getopt return operands as they come: otherwise the options would end at the first operand if
        // the environment has POSIXLY_CORRECT. The colon makes it return ':' if a value is missing.
        var letters = "-:"
        for option in options {
            guard let letter = option.letter else { continue }
            letters.append(letter)
            if option.value != nil { letters.append(":") }
        }

        var parsed = ParsedArguments()
        // 0, not 1, makes glibc start again.
        optind = 0
        opterr = 0
        while true {
            let found = getopt_long(Int32(argv.count - 1), &argv, letters, &table, nil)
            if found == -1 { break }
            if found == operand {
                parsed.operands.append(String(cString: optarg))
                continue
            }
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
        let longer = options.map { "--" + $0.name }.filter { name != "--" && $0.hasPrefix(name) }
        if longer.count > 1 { return UsageError("option \(name) is ambiguous: \(longer.joined(separator: ", "))") }
        return UsageError("unknown option \(word)\(Suggestion.text(for: name, in: options.map { "--" + $0.name }))")
    }
}

extension CommandOption {
    /// The value for getopt_long(3).
    fileprivate var argumentKind: Int32 {
        if value == nil { return no_argument }
        return isValueOptional ? optional_argument : required_argument
    }
}

extension ParsedArguments {
    /// A whole number within `range`.
    func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = last(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let least = range.lowerBound
            let bounds = range.upperBound == .max ? "of at least \(least)" : "from \(least) to \(range.upperBound)"
            throw UsageError("--\(name) must be a whole number \(bounds), not '\(text)'")
        }
        return number
    }

    /// A time: seconds, optionally with a fraction, or a number with a unit (`500ms`, `2s`, `1m`, `1h`). Not negative,
    /// and at most a year.
    func seconds(_ name: String, allowingZero: Bool = false) throws(UsageError) -> Duration? {
        guard let text = last(name) else { return nil }
        let units = ["": 1, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600]
        guard let (number, unit) = Self.amount(text), let factor = units[unit.lowercased()],
            number != 0 || allowingZero,
            let duration = Duration(seconds: number * factor)
        else {
            throw UsageError("--\(name) must be a time in seconds or with a unit, like 500ms, 2s or 1m, not '\(text)'")
        }
        return duration
    }

    /// A positive number of bytes, optionally with a unit: `500000`, `500K`, `10MB`, `1G` are powers of 1,000, `10MiB`
    /// is a power of 1,024.
    func bytes(_ name: String) throws(UsageError) -> Int? {
        guard let text = last(name) else { return nil }
        if let number = Int(text), number > 0 { return number }
        guard let (number, unit) = Self.amount(text), let factor = Self.bytes(in: unit.lowercased()),
            let bytes = Int(exactly: number * factor), bytes > 0
        else {
            throw UsageError(
                "--\(name) must be a size in bytes or with a unit, like 500000, 500K or 10MB, not '\(text)'")
        }
        return bytes
    }

    private static func bytes(in unit: String) -> Double? {
        if unit.isEmpty || unit == "b" { return 1 }
        let powers: [Character: Int] = ["k": 1, "m": 2, "g": 3, "t": 4]
        guard let power = unit.first.flatMap({ powers[$0] }) else { return nil }
        let base: Double
        switch unit.dropFirst() {
        case "", "b": base = 1000
        case "i", "ib": base = 1024
        default: return nil
        }
        return (0..<power).reduce(1) { product, _ in product * base }
    }

    /// A number and its unit.
    private static func amount(_ text: String) -> (number: Double, unit: String)? {
        let unit = String(text.reversed().prefix { $0.isLetter }.reversed())
        return Double(text.dropLast(unit.count)).map { ($0, unit) }
    }

    /// A base URL, which must have a scheme.
    func base(_ name: String) throws(UsageError) -> String? {
        guard let text = last(name) else { return nil }
        guard CommandURL.hasWebScheme(text) else {
            throw UsageError("--\(name) must be a URL that begins with http:// or https://, not '\(text)'")
        }
        if let fault = RequestCheck.fault(ofBase: text) { throw UsageError("--\(name): \(fault)") }
        return text
    }

    /// `NAME: VALUE` fields, which the engine checks.
    func headerFields(_ name: String) throws(UsageError) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for text in all(name) {
            guard let (field, rest) = text.parted(at: ":"), !field.isEmpty else {
                throw UsageError("--\(name) must be 'Name: value', not '\(text)'")
            }
            let value = rest.utf8.drop { " \t".utf8.contains($0) }
            fields.append((field, String(decoding: value, as: UTF8.self)))
        }
        return fields
    }

    /// `key=value` pairs.
    func pairs(_ name: String) throws(UsageError) -> [(name: String, value: String)] {
        var pairs: [(name: String, value: String)] = []
        for text in all(name) {
            guard let (key, value) = text.parted(at: "="), !key.isEmpty else {
                throw UsageError("--\(name) must be 'key=value', not '\(text)'")
            }
            pairs.append((key, value))
        }
        return pairs
    }

    /// Status codes: `200`, `200-299`, or several of these, separated by commas.
    func statusRanges(_ name: String) throws(UsageError) -> [ClosedRange<Int>]? {
        guard let text = last(name) else { return nil }
        return try text.split(separator: ",", omittingEmptySubsequences: false).map { part throws(UsageError) in
            guard let range = StatusRange.reading(part) else {
                throw UsageError("--\(name) must be status codes such as 200-299, not '\(text)'")
            }
            return range
        }
    }
}

/// A suggestion for an unknown word.
enum Suggestion {
    /// ` (did you mean NAME?)`, or empty if no name is within two edits.
    static func text(for word: String, in names: [String]) -> String {
        let most = min(2, word.count / 2)
        let near = names.filter { abs($0.count - word.count) <= most }
            .map { (name: $0, slips: slips(Array(word), Array($0))) }.filter { $0.slips <= most }
        return near.min { $0.slips < $1.slips }.map { " (did you mean \($0.name)?)" } ?? ""
    }

    /// The number of edits: letters that are left out, inserted, changed or swapped with their neighbour (optimal
    /// string alignment distance).
    static func slips(_ a: [Character], _ b: [Character]) -> Int {
        var last: [Int] = []
        var row = Array(0...b.count)
        for i in a.indices {
            var next = [i + 1]
            for j in b.indices {
                var best = min(row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, last[j - 1] + 1) }
                next.append(best)
            }
            (last, row) = (row, next)
        }
        return row[b.count]
    }
}

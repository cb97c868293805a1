/// What may stand where no option does, or be an option's value; for shells, which complete it.
enum CommandOperands: Sendable, Equatable {
    /// Nothing that can be known beforehand, like a URL.
    case unknown
    case files
    case folders
    case words([String])
}

extension CommandOption {
    /// What its value may be; `nil` when it takes none, or none as a word of its own.
    var operands: CommandOperands? {
        guard let value, !isValueOptional else { return nil }
        if !words.isEmpty { return .words(words) }
        switch value {
        case "FILE", "FILE|DIR": return .files
        case "FOLDER": return .folders
        default: return .unknown
        }
    }

    /// As they are typed.
    var spellings: [String] { (letter.map { ["-\($0)"] } ?? []) + ["--\(name)"] }
}

/// What may stand where no option does, or be an option's value; for shells, which complete it.
enum CommandOperands: Sendable, Equatable {
    /// Nothing that can be known beforehand, like a URL.
    case unknown
    case files
    /// Files behind an `@`, as in `@FILE` and `K=@FILE`; anything else cannot be known.
    case filesAfterAt
    case folders
    case words([String])
}

extension CommandOption {
    /// What its value may be; `nil` when it takes none. One that is optional stands behind an equals sign only.
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

    /// As they are typed.
    var spellings: [String] { (letter.map { ["-\($0)"] } ?? []) + ["--\(name)"] }
}

/// Completions for zsh, by its `_arguments`.
struct ZshCompletions {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        let names = commands.map { "            " + Self.quoted("\($0.name):\(Self.escaped($0.summary))") }
        return """
            #compdef ferry
            # Completions of ferry \(Main.version) for zsh.
            _ferry() {
                local state line
                _arguments -C \\
                    '(- *)--help[Prints the subcommands]' '(- *)--version[Prints the version]' \\
                    '1: :->command' '*:: :->arguments' && return
                case $state in
                command)
                    local -a commands
                    commands=(
            \(names.joined(separator: "\n"))
                    )
                    _describe subcommand commands
                    ;;
                arguments)
                    case $line[1] in
            \(commands.map(branch).joined(separator: "\n"))
                    esac
                    ;;
                esac
            }
            # Of a folder of $fpath this file is the body of the function, which is called already; else it is sourced.
            if [[ $funcstack[1] == _ferry ]]; then _ferry "$@"; else compdef _ferry ferry; fi

            """
    }

    private func branch(_ command: any Subcommand.Type) -> String {
        var words: [String] = []
        for option in command.allOptions {
            // Each may come again, as an alias may have one already.
            // A value that is optional stands in the same word, behind an equals sign.
            let spellings = option.spellings.map { option.isValueOptional ? $0 + "=-" : $0 }
            let names = spellings.count == 1 ? spellings[0] : "{\(spellings.joined(separator: ","))}"
            let help = Self.quoted("[\(Self.escaped(option.help))]\(value(of: option))")
            words.append("'*'\(names)\(help)")
        }
        if let action = action(command.operands) { words.append(Self.quoted("*: :\(action)")) }
        return
            (["\(command.name))", "    _arguments -s \\"]
            + words.enumerated().map { "        \($1)" + ($0 == words.count - 1 ? "" : " \\") } + ["    ;;"])
            .map { "            " + $0 }.joined(separator: "\n")
    }

    private func value(of option: CommandOption) -> String {
        guard let operands = option.operands, let value = option.value else { return "" }
        return "\(option.isValueOptional ? "::" : ":")\(Self.escaped(value)):\(action(operands) ?? "")"
    }

    private func action(_ operands: CommandOperands) -> String? {
        switch operands {
        case .unknown: nil
        case .files: "_files"
        case .filesAfterAt: "{ compset -P '*@' && _files }"
        case .folders: "_files -/"
        case .words(let words): "(\(words.joined(separator: " ")))"
        }
    }

    /// Within a description.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            if "[]:\\".contains(character) { escaped.append("\\") }
            escaped.append(character)
        }
        return escaped
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "'"
        for character in text { quoted += character == "'" ? "'\\''" : String(character) }
        return quoted + "'"
    }
}

/// Completions for bash, by a function of its own.
struct BashCompletions {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        let names = commands.map { $0.name } + ["--help", "--version"]
        return """
            # Completions of ferry \(Main.version) for bash.
            _ferry() {
                local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
                # --option=value comes as three words.
                if [[ $cur == = ]]; then
                    cur=
                elif [[ $prev == = ]]; then
                    prev=${COMP_WORDS[COMP_CWORD - 2]}
                fi
                COMPREPLY=()
                if ((COMP_CWORD == 1)); then
                    mapfile -t COMPREPLY < <(compgen -W '\(names.joined(separator: " "))' -- "$cur")
                    return
                fi
                case ${COMP_WORDS[1]} in
            \(commands.map(branch).joined(separator: "\n"))
                esac
            }
            complete -F _ferry ferry

            """
    }

    private func branch(_ command: any Subcommand.Type) -> String {
        var lines = ["    \(command.name))", "        case $prev in"]
        for option in command.allOptions {
            guard let operands = option.operands else { continue }
            lines += ["        \(option.spellings.joined(separator: " | ")))"]
            lines += reply(operands).map { "            " + $0 } + ["            return", "            ;;"]
        }
        let spellings = command.allOptions.flatMap(\.spellings)
        lines += [
            "        esac", "        if [[ $cur == -* ]]; then",
            "            mapfile -t COMPREPLY < <(compgen -W '\(spellings.joined(separator: " "))' -- \"$cur\")",
        ]
        let operands = reply(command.operands)
        if !operands.isEmpty { lines += ["        else"] + operands.map { "            " + $0 } }
        return (lines + ["        fi", "        ;;"]).map { "    " + $0 }.joined(separator: "\n")
    }

    private func reply(_ operands: CommandOperands) -> [String] {
        func filled(_ way: String) -> String { "mapfile -t COMPREPLY < <(compgen \(way) -- \"$cur\")" }
        // Only where it is bash that asks: names with spaces are quoted then, and folders have a slash.
        let asNames = "compopt -o filenames 2>/dev/null"
        return switch operands {
        case .unknown: []
        case .files: [asNames, filled("-f")]
        case .folders: [asNames, filled("-d")]
        case .words(let words): [filled("-W '\(words.joined(separator: " "))'")]
        }
    }
}

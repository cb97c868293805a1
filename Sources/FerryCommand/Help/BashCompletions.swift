/// Completions for bash, by a function of its own.
struct BashCompletions {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        let names = commands.map { $0.name } + ["--help", "--version"]
        return """
            # Completions of ferry \(Main.version) for bash.
            _ferry() {
                local cur=${COMP_WORDS[COMP_CWORD]} place=$((COMP_CWORD - 1)) sign=
                # --option=value comes as three words, and key=@file behind its option, too.
                if [[ $cur == [=@] || $cur == =@ ]]; then
                    sign=$cur cur=
                elif [[ ${COMP_WORDS[place]} == [=@] || ${COMP_WORDS[place]} == =@ ]]; then
                    sign=${COMP_WORDS[place]} place=$((place - 1))
                fi
                # Where an at sign parts no words.
                if [[ $cur == @* ]]; then sign+=@; fi
                local prev=${COMP_WORDS[place]}
                if [[ $sign == =* && $prev != -* && place -gt 2 ]]; then prev=${COMP_WORDS[place - 1]}; fi
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
            let reply = reply(operands) + ["return"]
            if option.isValueOptional {
                lines +=
                    ["            if [[ $sign == = ]]; then"] + reply.map { "                " + $0 } + [
                        "            fi"
                    ]
            } else {
                lines += reply.map { "            " + $0 }
            }
            lines += ["            ;;"]
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
        case .filesAfterAt:
            // What is typed is replaced from the sign on, whether that parts words or not. As names it would be
            // escaped.
            [
                "if [[ $sign == *@ ]]; then",
                "    mapfile -t COMPREPLY < <(compgen -f -- \"${cur#@}\" | while IFS= read -r; do printf '@%q\\n' \"$REPLY\"; done)",
                "fi",
            ]
        case .folders: [asNames, filled("-d")]
        case .words(let words): [filled("-W '\(words.joined(separator: " "))'")]
        }
    }
}

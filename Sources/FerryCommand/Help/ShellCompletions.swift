/// Completions for bash, with a function.
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
        // Only in a bash completion: names with spaces are quoted then, and folders have a slash.
        let asNames = "compopt -o filenames 2>/dev/null"
        return switch operands {
        case .unknown: []
        case .files: [asNames, filled("-f")]
        case .filesAfterAt:
            // The typed text is replaced from the sign on, whether the sign separates words or not. As a file name it
            // would be escaped.
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

/// Completions for zsh, with `_arguments`.
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
            // Each may be repeated, because an alias may already set it. An optional value is in the same word, after
            // an equals sign.
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

    /// Escapes a description.
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

/// Completions for fish, with one line for each option.
struct FishCompletions {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        var lines = [
            "# Completions of ferry \(Main.version) for fish.",
            "function __ferry_files_after_at",
            "    if set -l parts (string match -r '^(.*@)(.*)$' -- (commandline -ct))",
            "        for file in (__fish_complete_path $parts[3]); echo $parts[2]$file; end", "    end", "end",
            "complete -c ferry -f",
            "complete -c ferry -n __fish_use_subcommand -l help -d 'Prints the subcommands'",
            "complete -c ferry -n __fish_use_subcommand -l version -d 'Prints the version'",
        ]
        for command in commands {
            lines.append(
                "complete -c ferry -n __fish_use_subcommand -a \(command.name) -d \(Self.quoted(command.summary))")
        }
        for command in commands {
            let head = "complete -c ferry -n '__fish_seen_subcommand_from \(command.name)'"
            for option in command.allOptions {
                let letter = option.letter.map { " -s \($0)" } ?? ""
                lines.append("\(head)\(letter) -l \(option.name)\(value(of: option)) -d \(Self.quoted(option.help))")
            }
            switch command.operands {
            case .unknown, .filesAfterAt: break
            case .files: lines.append(head + " -F")
            case .folders: lines.append(head + " -a '(__fish_complete_directories)'")
            case .words(let words): lines.append(head + " -a '\(words.joined(separator: " "))'")
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func value(of option: CommandOption) -> String {
        switch option.operands {
        case nil: ""
        // Without -r it is offered after an equals sign only.
        case .files where option.isValueOptional: " -F"
        case .filesAfterAt: " -x -a '(__ferry_files_after_at)'"
        case .unknown: " -x"
        case .files: " -r -F"
        case .folders: " -x -a '(__fish_complete_directories)'"
        case .words(let words): " -x -a '\(words.joined(separator: " "))'"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "'"
        for character in text {
            if character == "'" || character == "\\" { quoted.append("\\") }
            quoted.append(character)
        }
        return quoted + "'"
    }
}

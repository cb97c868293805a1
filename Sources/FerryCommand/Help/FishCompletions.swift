/// Completions for fish, a line for each option.
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
        // Without -r it is offered behind an equals sign only.
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

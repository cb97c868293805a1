/// The manual page of the command, made of the table that `--help` is made of, in the macros of man(7).
struct ManualPage {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        var lines = [
            // Neither hyphens nor wide gaps in what may be copied.
            ".TH FERRY 1 \"\" \"ferry \(Main.version)\"", ".nh", ".ad l",
            ".SH NAME", "ferry \\- \(Self.escaped(Main.summary))",
            ".SH SYNOPSIS",
        ]
        for command in commands {
            lines += [".B ferry \(command.name)", Self.escaped(command.synopsis), ".br"]
        }
        lines += [".B ferry \\-\\-version"]
        lines += [".SH DESCRIPTION", "A subcommand says what is done:"]
        for command in commands { lines += [".TP", ".B \(command.name)", Self.escaped(command.summary) + "."] }
        for command in commands { lines += section(command) }
        lines += [".SH EXIT STATUS"]
        for code in ExitCode.allCases { lines += [".TP", ".B \(code.rawValue)", Self.escaped(code.meaning)] }
        lines += [".SH ENVIRONMENT"]
        for (name, meaning) in ManualExamples.environment {
            lines += [".TP", ".B \(Self.escaped(name))", Self.escaped(meaning)]
        }
        lines += [".SH EXAMPLES"]
        for (line, meaning) in ManualExamples.commands {
            lines += [".TP", ".B \(Self.escaped(line))", Self.escaped(meaning)]
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func section(_ command: any Subcommand.Type) -> [String] {
        var lines = [".SH \(command.name.uppercased())", Self.escaped(command.summary) + "."]
        for group in command.allGroups {
            if !group.title.isEmpty { lines += [".SS \(Self.escaped(group.title))"] }
            for option in group.options {
                let names = (option.letter.map { ["-\($0)"] } ?? []) + ["--\(option.name)"]
                var head = names.map { "\\fB\(Self.escaped($0))\\fR" }.joined(separator: ", ")
                if option.value != nil { head += "\\fI\(Self.escaped(option.valueText))\\fR" }
                lines += [".TP", head, Self.escaped(option.help)]
            }
        }
        return lines + paragraphs(command.notes)
    }

    /// Notes are wrapped for terminals, and the reader wraps them anew; an indented line is a command and stays one.
    private func paragraphs(_ notes: String) -> [String] {
        var lines: [String] = []
        var wasCommand = false
        for line in notes.split(separator: "\n", omittingEmptySubsequences: false) {
            let isCommand = line.hasPrefix("  ")
            let text = Self.escaped(line.drop { $0 == " " })
            if lines.isEmpty || line.isEmpty || (wasCommand && !isCommand) { lines.append(".PP") }
            if isCommand { lines.append(".br") }
            if !text.isEmpty { lines.append(text) }
            wasCommand = isCommand
        }
        return notes.isEmpty ? [] : lines
    }

    /// Without meaning to troff: a line of it is text, whatever it begins with, and a hyphen stays one.
    static func escaped(_ text: some StringProtocol) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case " "..."~": escaped.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                escaped += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
            }
        }
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }
}

/// What the manual page has beside the tables of options.
enum ManualExamples {
    /// As they are typed, and what they do.
    static let commands: [(line: String, meaning: String)] = [
        (
            "ferry fetch http://127.0.0.1:8080/json --status 200 --schema shape.json",
            "Prints the body of an answer that must be as a schema says."
        ),
        (
            "ferry download https://example.com/x.iso --segments 4 --sha256 HEX",
            "Loads a file in four parts, and checks it. The same command goes on after a ctrl-C."
        ),
        (
            "ferry run --serve --html run.html Examples/checkout.json",
            "Runs a plan on a server of its own, with a page."
        ),
        ("ferry serve --port 8080 --script Examples/Serve/faults.json", "Runs a server that misbehaves on some paths."),
        (
            "ferry bench http://127.0.0.1:8080/ -c 256 -z 30 -w 2 --json=before.json",
            "256 requests at once for half a minute, after two seconds to warm up; the figures go to a file, too."
        ),
        (
            "ferry bench http://127.0.0.1:8080/ -z 30 -w 2 --baseline before.json --fail-if 'p99>+10%'",
            "Ends with 4 when the answers are slower than they were."
        ),
    ]

    /// What is looked at, and for what.
    static let environment: [(name: String, meaning: String)] = [
        ("NO_COLOR", "With any value, no text is bold."),
        ("TERM", "Where it is dumb, or not there, no line on the terminal is written anew."),
        (
            "http_proxy, https_proxy, all_proxy, no_proxy",
            "Proxies, and hosts that are reached without one; with --proxy-env only."
        ),
        ("Any other", "Plans read those that they name, as {{env.NAME}}."),
    ]
}

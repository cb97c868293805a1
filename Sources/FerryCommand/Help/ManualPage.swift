/// The manual page of the command, generated from the same tables as `--help`, in the macros of man(7).
struct ManualPage {
    private let commands: [any Subcommand.Type]

    init(of commands: [any Subcommand.Type]) { self.commands = commands }

    var text: String {
        var lines = [
            // No hyphenation and no wide gaps in text that may be copied.
            ".TH FERRY 1 \"\" \"ferry \(Main.version)\"", ".nh", ".ad l",
            ".SH NAME", "ferry \\- \(Self.escaped(Main.summary))",
            ".SH SYNOPSIS",
        ]
        for command in commands {
            lines += [".B ferry \(command.name)", Self.escaped(command.synopsis), ".br"]
        }
        lines += [".B ferry \\-\\-version"]
        lines += [".SH DESCRIPTION", "The subcommands are:"]
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

    /// Notes are wrapped for terminals, and man wraps them again. An indented line is a command and stays unchanged.
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

    /// Escapes text for troff: a line is text, whatever it begins with, and a hyphen stays a hyphen.
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

/// Further sections of the manual page.
enum ManualExamples {
    /// Commands, and what they do.
    static let commands: [(line: String, meaning: String)] = [
        (
            "ferry fetch http://127.0.0.1:8080/json --status 200 --schema shape.json",
            "Print the body of a response after checking it against a schema."
        ),
        (
            "ferry download https://example.com/x.iso --segments 4 --sha256 HEX",
            "Download a file in four segments and check it. The same command resumes after a ctrl-C."
        ),
        (
            "ferry run --serve --html run.html Examples/checkout.json",
            "Run a plan against a built-in server, and write a page."
        ),
        ("ferry serve --port 8080 --script Examples/Serve/faults.json", "Run a server that misbehaves on some paths."),
        (
            "ferry bench http://127.0.0.1:8080/ -c 256 -z 30 -w 2 --json=before.json",
            "Send 256 requests at once for 30 seconds after a warm-up of two seconds, and write the figures to a file."
        ),
        (
            "ferry bench http://127.0.0.1:8080/ -z 30 -w 2 --baseline before.json --fail-if 'p99>+10%'",
            "Exit with 4 if responses are slower than in the baseline."
        ),
    ]

    /// Environment variables, and what they do.
    static let environment: [(name: String, meaning: String)] = [
        ("NO_COLOR", "If set, text is neither bold nor coloured."),
        ("TERM", "If it is dumb or not set, no lines on the terminal are rewritten."),
        (
            "http_proxy, https_proxy, all_proxy, no_proxy",
            "Proxies, and hosts to reach without a proxy; used only with --proxy-env."
        ),
        ("FERRY_ENGINE", "The default of --engine: automatic or libcurl."),
        ("PATH", "Where ferry bench --compare looks for the other client."),
        ("TMPDIR", "The directory for temporary files."),
        ("Others", "Plans read variables that they name, as {{env.NAME}}."),
    ]
}

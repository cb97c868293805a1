import FerryMeasurement
import Foundation
import Testing

@testable import FerryCommand

/// The manual page and the completions: both are made from the same table as `--help`.
@Suite(.timeLimit(.minutes(1))) struct HelpTests {
    /// Whether this machine has a program.
    private static func has(_ program: String) -> Bool {
        (try? ChildProcess(["/bin/sh", "-c", "command -v \(program)"]).finish().code) == 0
    }

    @Test func helpIsTheSameByAllNames() throws {
        let help = try FerryProgram.run("--help")
        #expect(help.code == 0 && help.output == Main.help)
        #expect(try FerryProgram.run("help").output == help.output)
        for command in Main.subcommands {
            #expect(help.output.contains("\n  \(command.name)  "))
            #expect(try FerryProgram.run("help", command.name).output == command.help)
        }
    }

    @Test func everyHelpFitsEightyColumnsAndUsesMore() {
        let helps = [Main.help(columns:)] + Main.subcommands.map { command in { command.help(columns: $0) } }
        for help in helps {
            for columns in [80, 120] {
                let long = help(columns).split(separator: "\n").filter { TerminalText.width(String($0)) > columns }
                #expect(long.isEmpty, "\(long)")
            }
            let lines = [80, 200].map { help($0).split(separator: "\n").count }
            #expect(lines[1] <= lines[0])
        }
        let fetch = FetchCommand.help(columns: 200)
        #expect(fetch.split(separator: "\n").count < FetchCommand.help.split(separator: "\n").count)
    }

    @Test func everyLineOfTheTourFitsEightyColumns() throws {
        let end = try FerryProgram.run("tour")
        let lines = end.output.split(separator: "\n")
        #expect(end.code == 0 && lines.count == TourStep.all.count, "\(end.output)")
        #expect(lines.allSatisfy { $0.hasPrefix("ok    ") && TerminalText.width(String($0)) <= 80 }, "\(end.output)")
        // However long a step takes: "(99.9 ms)" is the widest time below 100 s.
        for line in lines {
            let detail = line.components(separatedBy: "  (").dropLast().joined(separator: "  (")
            #expect(TerminalText.width(detail + "  (99.9 ms)") <= 80, "\(line)")
        }
        let detail = Array(repeating: "words", count: 30).joined(separator: " ")
        let result = TourResult(name: "a step", ok: false, detail: detail, nanoseconds: 1_000_000)
        let text = TourCommand.text(result, columns: 80)
        #expect(text.split(separator: "\n").allSatisfy { TerminalText.width(String($0)) <= 80 }, "\(text)")
        #expect(text.components(separatedBy: "words").count == 31 && text.hasSuffix("(1.0 ms)\n"))
    }

    @Test func filledTextKeepsItsWordsAndIndentedLines() {
        #expect(TerminalText.filled("one two  three", to: 7) == ["one two", "three"])
        #expect(TerminalText.filled("seventeen a", to: 4) == ["seventeen", "a"])
        #expect(TerminalText.filledParagraphs("a b\nc\n  ferry  x\n\nd", to: 3) == "a b\nc\n  ferry  x\n\nd")
    }

    @Test func noArgumentsPrintTheHelpAndAreAUsageError() throws {
        let end = try FerryProgram.run()
        #expect(end.code == 1 && end.output == Main.help)
    }

    @Test(arguments: [
        (["help", "me"], "unknown subcommand 'me'"),
        (["help", "fetch", "run"], "expected one subcommand, found also 'run'"),
        (["help", "--man", "fetch"], "--man and 'fetch' cannot be combined"),
        (["completions"], "expected a shell: bash, zsh or fish"),
        (["completions", "tcsh"], "unknown shell 'tcsh'; supported are bash, zsh and fish"),
    ]) func senselessCombinationsAreUsageErrors(_ line: [String], _ message: String) throws {
        let end = try FerryProgram.run(line)
        #expect(end.code == 1 && end.output.contains(message), "\(end.output)")
    }

    @Test func thePageHasEverySubcommandAndOption() {
        let page = ManualPage(of: Main.subcommands).text
        for command in Main.subcommands {
            #expect(page.contains("\n.SH \(command.name.uppercased())\n"))
            for option in command.allOptions {
                #expect(page.contains("\\fB\(ManualPage.escaped("--\(option.name)"))\\fR"), "\(option.name)")
                #expect(page.contains("\n" + ManualPage.escaped(option.help) + "\n"), "\(option.name)")
            }
        }
        for code in ExitCode.allCases { #expect(page.contains("\n.B \(code.rawValue)\n\(code.meaning)\n")) }
        #expect(page.utf8.allSatisfy { $0 < 128 }, "readers differ in the rest")
    }

    /// The reader fills lines: a text wrapped for a terminal is one paragraph.
    @Test func notesAreParagraphsAndCommandsStayLines() {
        let lines = ManualPage(of: Main.subcommands).text.split(separator: "\n").map { String($0) }
        let breaks = lines.indices.filter { lines[$0] == ".br" && $0 + 1 < lines.count }.map { lines[$0 + 1] }
        let commands = breaks.filter { !$0.hasPrefix(".B ") }
        #expect(commands.allSatisfy { $0.hasPrefix("ferry ") } && commands.count == 4, "\(commands)")
        let first = BenchCommand.notes.split(separator: "\n")[0]
        let place = lines.firstIndex(of: ManualPage.escaped(first))
        #expect(place.map { lines[$0 - 1] } == ".PP" && place.map { lines[$0 + 1].hasPrefix("Latencies") } == true)
    }

    @Test func theExamplesOfThePageAreUnderstood() throws {
        let page = ManualPage(of: Main.subcommands).text
        #expect(ManualExamples.commands.count >= 5)
        for (line, meaning) in ManualExamples.commands {
            #expect(page.contains("\n.B \(ManualPage.escaped(line))\n\(ManualPage.escaped(meaning))\n"))
            let words = try ShellWords.split(line)
            let command = try #require(Main.subcommands.first { $0.name == words[1] })
            #expect(words[0] == "ferry")
            _ = try ParsedArguments(Array(words.dropFirst(2)), of: command.allOptions)
        }
        for (name, _) in ManualExamples.environment { #expect(page.contains("\n.B \(name)\n")) }
        #expect(page.contains("\n.SH ENVIRONMENT\n") && page.contains("ferry \\-\\-version"))
    }

    @Test func textHasNoMeaningToTroff() {
        #expect(ManualPage.escaped(".TH isn't") == "\\&.TH isn\\(aqt")
        #expect(ManualPage.escaped("'so") == "\\(aqso")
        #expect(ManualPage.escaped("a-b\\c…") == "a\\-b\\ec\\[u2026]")
    }

    @Test(.enabled(if: has("groff"))) func groffReadsThePageWithoutAWarning() throws {
        let file = try TemporaryFile(Array(ManualPage(of: Main.subcommands).text.utf8))
        let groff = #"groff -man -Tutf8 -ww -P-cbou "$0""#
        let warnings = try ChildProcess(["/bin/sh", "-c", groff + " 2>&1 >/dev/null", file.path]).finish()
        #expect(warnings.code == 0 && warnings.output.isEmpty, "\(warnings.output)")
        let end = try ChildProcess(["/bin/sh", "-c", groff, file.path]).finish()
        let text = end.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains("--cache-mode MODE How to use the cache: else-network, reload or only (else-network)"))
        #expect(text.contains("-H, --header 'N: V'"))
        #expect(text.contains("130 interrupted"))
    }

    @Test func everyShellKnowsEverySubcommandAndOption() {
        let scripts = [
            BashCompletions(of: Main.subcommands).text, ZshCompletions(of: Main.subcommands).text,
            FishCompletions(of: Main.subcommands).text,
        ]
        for script in scripts {
            for command in Main.subcommands {
                #expect(script.contains(command.name))
                for option in command.allOptions { #expect(script.contains(option.name), "\(option.name)") }
            }
        }
    }

    /// The completions of bash for these words, the last of which is being typed.
    private func offers(_ words: String..., in folder: String = "/") throws -> [String] {
        let script = """
            set -u
            source "$1"; cd "$2"; shift 2
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            _ferry
            ((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
            complete -p ferry >&2
            """
        let file = try TemporaryFile(Array(BashCompletions(of: Main.subcommands).text.utf8))
        let end = try ChildProcess(["bash", "--norc", "-c", script, "bash", file.path, folder] + words).finish()
        return end.output.split(separator: "\n").map { String($0) }
    }

    @Test(.enabled(if: has("bash"))) func bashCompletes() throws {
        #expect(try offers("ferry", "") == Main.subcommands.map { $0.name } + ["--help", "--version"])
        #expect(try offers("ferry", "f") == ["fetch"])
        #expect(
            try offers("ferry", "fetch", "--cache-") == [
                "--cache-dir", "--cache-ttl", "--cache-version", "--cache-mode",
            ])
        #expect(try offers("ferry", "run", "--cac") == ["--cache-dir", "--cache"])
        #expect(try offers("ferry", "fetch", "http://h/", "--cache-mode", "") == ["else-network", "reload", "only"])
        #expect(try offers("ferry", "fetch", "--cache-mode", "=", "re") == ["reload"])
        #expect(try offers("ferry", "fetch", "--cache-mode", "=") == ["else-network", "reload", "only"])
        #expect(try offers("ferry", "fetch", "-X", "") == [], "nobody knows")
        #expect(try offers("ferry", "completions", "") == ["bash", "zsh", "fish"])
        #expect(try offers("ferry", "help", "se") == ["serve"])
        #expect(try offers("ferry", "nothing", "-") == [])
        for command in Main.subcommands {
            #expect(try offers("ferry", command.name, "-") == command.allOptions.flatMap(\.spellings))
        }
    }

    @Test(.enabled(if: has("bash"))) func bashCompletesFiles() throws {
        let folder = NSTemporaryDirectory() + "ferry-help-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder + "/plans of mine", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(FileManager.default.createFile(atPath: folder + "/a plan.json", contents: nil))
        #expect(try offers("ferry", "run", "a", in: folder) == ["a plan.json"])
        #expect(try offers("ferry", "fetch", "--schema", "a", in: folder) == ["a plan.json"])
        #expect(try offers("ferry", "fetch", "--cache-dir", "", in: folder) == ["plans of mine"])
        #expect(try offers("ferry", "bench", "--json", "=", "a", in: folder) == ["a plan.json"])
        #expect(try offers("ferry", "bench", "--json", "=", in: folder).sorted() == ["a plan.json", "plans of mine"])
        #expect(try offers("ferry", "bench", "--json", "a", in: folder) == [], "it is no value of it")
        // With the at sign as a word separator, as by default, and without.
        #expect(try offers("ferry", "fetch", "-d", "@", "a", in: folder) == [#"@a\ plan.json"#])
        #expect(try offers("ferry", "fetch", "-d", "@a", in: folder) == [#"@a\ plan.json"#])
        #expect(try offers("ferry", "fetch", "-d", "a", in: folder) == [])
        #expect(
            try offers("ferry", "bench", "--json-body", "@", in: folder).sorted() == [
                #"@a\ plan.json"#, #"@plans\ of\ mine"#,
            ])
        #expect(try offers("ferry", "fetch", "-F", "k", "=@", "a", in: folder) == [#"@a\ plan.json"#])
        #expect(try offers("ferry", "fetch", "--multipart", "k", "=", "@a", in: folder) == [#"@a\ plan.json"#])
        #expect(try offers("ferry", "fetch", "--multipart", "k", "=", "a", in: folder) == [])
    }

    @Test(.enabled(if: has("zsh"))) func zshReadsItsScript() throws {
        let file = try TemporaryFile(Array(ZshCompletions(of: Main.subcommands).text.utf8))
        #expect(try ChildProcess(["zsh", "-n", file.path]).finish().code == 0)
    }

    @Test(.enabled(if: has("zsh"))) func zshCompletesByTheFirstCall() throws {
        let folder = NSTemporaryDirectory() + "ferry-zsh-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try ZshCompletions(of: Main.subcommands).text.write(
            toFile: folder + "/_ferry", atomically: true, encoding: .utf8)
        // From a folder of $fpath, and by hand.
        let script = """
            _arguments() { print completes }; compdef() { print compdef "$@" }
            fpath=($1); autoload -Uz _ferry; _ferry; _ferry; unfunction _ferry
            source $1/_ferry; _ferry
            """
        let end = try ChildProcess(["zsh", "-f", "-c", script, "zsh", folder]).finish()
        #expect(end.output == "completes\ncompletes\ncompdef _ferry ferry\ncompletes\n")
    }

    @Test(.enabled(if: has("fish"))) func fishCompletesFilesBehindSigns() throws {
        let folder = NSTemporaryDirectory() + "ferry-fish-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(FileManager.default.createFile(atPath: folder + "/plan.json", contents: nil))
        let file = try TemporaryFile(Array(FishCompletions(of: Main.subcommands).text.utf8))
        let script = "source $argv[1]; cd $argv[2]; for line in $argv[3..]; complete -C $line; end"
        let lines = ["bench --json=p", "bench -d @p", "fetch -F k=@p", "bench --json p", "fetch -d p"]
        // fish writes files into its home folder.
        let fish = ["fish", "-c", script, file.path, folder] + lines.map { "ferry " + $0 }
        let end = try ChildProcess(fish, environment: ["HOME": folder]).finish()
        #expect(end.output == "--json=plan.json\n@plan.json\nk=@plan.json\n", "\(end)")
    }

    @Test(.enabled(if: has("fish"))) func fishReadsItsScript() throws {
        let file = try TemporaryFile(Array(FishCompletions(of: Main.subcommands).text.utf8))
        #expect(try ChildProcess(["fish", "--no-execute", file.path]).finish().code == 0)
    }
}

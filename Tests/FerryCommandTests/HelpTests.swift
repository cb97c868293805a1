import FerryMeasurement
import Foundation
import Testing

@testable import FerryCommand

/// The manual page and the completions: all of it comes from the table that `--help` comes from.
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

    @Test(arguments: [
        (["help", "me"], "there is no subcommand 'me'"), (["help", "fetch", "run"], "one subcommand, not also 'run'"),
        (["help", "--man", "fetch"], "--man and 'fetch' exclude each other"),
        (["completions"], "one shell is wanted: bash, zsh or fish"),
        (["completions", "tcsh"], "bash, zsh and fish are known, not 'tcsh'"),
    ]) func whatMakesNoSenseIsAUsageError(_ line: [String], _ message: String) throws {
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
        #expect(text.contains("--cache-mode MODE else-network, reload or only (else-network)"))
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

    /// What bash would offer for these words, the last of which is being typed.
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
        // Of a folder of $fpath, and by hand.
        let script = """
            _arguments() { print completes }; compdef() { print compdef "$@" }
            fpath=($1); autoload -Uz _ferry; _ferry; _ferry; unfunction _ferry
            source $1/_ferry; _ferry
            """
        let end = try ChildProcess(["zsh", "-f", "-c", script, "zsh", folder]).finish()
        #expect(end.output == "completes\ncompletes\ncompdef _ferry ferry\ncompletes\n")
    }

    @Test(.enabled(if: has("fish"))) func fishReadsItsScript() throws {
        let file = try TemporaryFile(Array(FishCompletions(of: Main.subcommands).text.utf8))
        #expect(try ChildProcess(["fish", "--no-execute", file.path]).finish().code == 0)
    }
}

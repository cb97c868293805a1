import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// Text from a server or a file never controls the terminal.
@Suite(.timeLimit(.minutes(2))) struct TerminalCommandTests {
    @Test func textIsOneLineWithoutCommands() {
        #expect(Main.oneLine("a\u{1B}[31m\n\u{7F}\u{9B}31m\u{2028}\u{2029}") == "a?[31m???31m??")
        #expect(Main.oneLine("\u{202A}\u{202E}\u{2066}\u{2069}") == "????")
        #expect(Main.oneLine("é 日本 – …") == "é 日本 – …")
    }

    @Test func whatAServerSentCommandsNoTerminal() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/redirect",
                [.send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ftp://x\u{9B}31m/\r\n\r\n"), .close])
            let fetched = try FerryProgram.run("fetch", server.baseURL + "/redirect")
            #expect(fetched.code == 3 && fetched.output.contains("redirectForbidden"), "\(fetched)")
            #expect(!fetched.output.unicodeScalars.contains("\u{9B}"))
            server.script(
                path: "/field", [.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: \u{9B}31m\r\n\r\n"), .close])
            let plan = try TemporaryFile(
                Array(
                    #"{"requests": {"a": {"path": "/field", "expect": {"headers": {"X-A": "z"}}}}, "run": "a"}"#.utf8))
            let run = try FerryProgram.run("run", "--base", server.baseURL, plan.path)
            #expect(run.code == 4 && run.output.contains("expected header X-A 'z', found '?31m'"), "\(run)")
            #expect(!run.output.unicodeScalars.contains("\u{9B}"))
        }
    }

    @Test func namesInATableAreOneLine() {
        var row = PlanRow(name: "a\u{9B}", depth: 1)
        (row.state, row.message) = (.failed, "\u{202E}b\nc")
        var skipped = PlanRow(name: "s\u{1B}", depth: 1)
        skipped.reason = "'a\u{9B}' failed"
        let table = PlanReport(name: "p\u{2028}", rows: [row, skipped], nanoseconds: 1).table
        #expect(table.split(separator: "\n").count == 5)
        #expect(table.contains("\n      ?b?c\n") && table.contains("s?  skipped: 'a?' failed\n"))
        #expect(table.contains("FAILED: p?, 0 of 2"))
    }
}

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
            let report = try FerryProgram.run("fetch", "--json", server.baseURL + "/field")
            #expect(report.code == 0 && report.output.contains(#"\u009b31m"#), "\(report)")
            #expect(!report.output.unicodeScalars.contains("\u{9B}"))
            let plan = try TemporaryFile(
                Array(
                    #"{"requests": {"a": {"path": "/field", "expect": {"headers": {"X-A": "z"}}}}, "run": "a"}"#.utf8))
            let run = try FerryProgram.run("run", "--base", server.baseURL, plan.path)
            #expect(run.code == 4 && run.output.contains("expected header X-A 'z', found '?31m'"), "\(run)")
            #expect(!run.output.unicodeScalars.contains("\u{9B}"))
        }
    }

    @Test func aLogDoesNotContinueTheLineOfABody() async throws {
        try await withLoopbackServer { server in
            for line in [["-v"], ["-v", "-o", "-"]] {
                let text = try shown(["fetch"] + line + [server.baseURL + "/hello"])
                let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
                #expect(lines.filter { $0 == "Hello, ferry" }.count == 1, "\(text)")
                #expect(!lines.dropLast().contains(""), "\(text)")
                #expect(lines.contains { $0.contains("finished") }, "\(text)")
            }
        }
    }

    /// What the command shows on a terminal that is its standard output and standard error.
    private func shown(_ line: [String]) throws -> String {
        // What unlockpt(3) and ptsname(3) do: Swift's Glibc module has neither.
        let (unlock, number): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var (off, index): (Int32, Int32) = (0, 0)
        try #require(terminal >= 0 && ioctl(terminal, unlock, &off) == 0 && ioctl(terminal, number, &index) == 0)
        defer { close(terminal) }
        let script = #"terminal=$1; shift; exec "$0" "$@" >"$terminal" 2>&1"#
        let shell = ["/bin/sh", "-c", script, try FerryProgram.path, "/dev/pts/\(index)"]
        let end = try ChildProcess(shell + line).finish()
        #expect(end.code == 0)
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(terminal, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            // At its end a terminal fails with EIO.
            if count <= 0 { break }
            text += buffer[..<count]
        }
        return String(decoding: text.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
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

import FaultTable
import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// Standard output that blocks or fails.
@Suite(.timeLimit(.minutes(2))) struct OutputTests {
    /// What the command prints on stderr, with its stdout elsewhere.
    private func run(_ redirection: String, _ arguments: [String]) throws -> ChildProcess.End {
        let shell = ["/bin/sh", "-c", #"exec "$0" "$@" 2>&1 "# + redirection, try FerryProgram.path]
        return try ChildProcess(shell + arguments).finish()
    }

    private static let fullDisk = "ferry: standard output: No space left on device\n"

    @Test func whatCannotBeWrittenIsSaidAndIsNoSuccess() async throws {
        let plan = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": "a"}"#.utf8))
        let folder = NSTemporaryDirectory() + "ferry-output-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let url = server.baseURL + "/bytes/100000"
            for line in [
                ["fetch", url], ["fetch", "--json", url], ["fetch", "--to-curl", url],
                ["download", "--json", "-o", folder, url], ["run", "--serve", plan.path], ["help", "--man"],
                ["bench", url, "-n", "2", "--any-body", "--json"], ["--version"], ["completions", "zsh"],
            ] {
                let end = try run(">/dev/full", line)
                #expect(end.code == 3 && end.output == Self.fullDisk, "\(line): \(end)")
            }
            let closed = try run(">&-", ["fetch", url])
            #expect(closed.code == 3 && closed.output == "ferry: standard output: Bad file descriptor\n", "\(closed)")
        }
    }

    /// `-` would be a file of that name.
    @Test(arguments: [
        ["fetch", "http://h/", "--har", "-"], ["download", "http://h/", "-o", "-"], ["bench", "http://h/", "--json=-"],
        ["bench", "http://h/", "--html", "-"], ["run", "PLAN", "--html", "-"], ["run", "PLAN", "--har=-"],
    ]) func aHyphenIsNoOutputFile(line: [String]) throws {
        let plan = try TemporaryFile(Array(#"{"requests": {"a": "http://h/"}, "run": "a"}"#.utf8))
        let end = try FerryProgram.run(line.map { $0 == "PLAN" ? plan.path : $0 })
        #expect(end.code == 1 && end.output.contains(" needs a file, not -; "), "\(end)")
        #expect(line[0] != "download" || end.output.contains("ferry fetch -o - writes to standard output"))
        #expect(!FileManager.default.fileExists(atPath: "-"))
    }

    @Test func theObjectSaysWhetherTheFileWasWritten() async throws {
        try await withLoopbackServer { server in
            let end = try run("", ["fetch", "--json", "-o", "/dev/full", server.baseURL + "/hello"])
            let said = "ferry fetch: cannot write /dev/full: No space left on device\n"
            #expect(end.code == 3 && end.output.contains(#""ok":false"#) && end.output.contains(said), "\(end)")
            #expect(end.output.contains(#""code":"fileIO""#) && end.output.contains(#""status":200"#))
            let file = try TemporaryFile([])
            let good = try run("", ["fetch", "--json", "-o", file.path, server.baseURL + "/hello"])
            #expect(good.code == 0 && good.output.contains(#""ok":true"#), "\(good)")
        }
    }

    @Test func anotherFaultDecidesFirst() async throws {
        try await withLoopbackServer { server in
            let end = try run(">/dev/full", ["fetch", server.baseURL + "/bytes/10", "--status", "404"])
            #expect(end.code == 5 && end.output.hasSuffix(Self.fullDisk), "\(end)")
        }
    }

    @Test func whatNobodyGetsIsNotLoaded() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/half", [.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .wait("never"), .close])
            // It would wait for the rest.
            let end = try run(">/dev/full", ["fetch", server.baseURL + "/half", "--repeat", "5"])
            #expect(end.code == 3 && end.output == Self.fullDisk && server.requestCount == 1, "\(end)")
        }
    }

    @Test(arguments: [["--repeat", "3"], ["-o", "/dev/stdout"], ["-o", "/dev/stdout", "--repeat", "3"]])
    func whoeverWantsNoMoreHasWhatTheyWanted(options: [String]) async throws {
        try await withLoopbackServer { server in
            let script = #"{ ("$0" fetch "$@"; echo "code $?" >&2) | head -c 3 >/dev/null; } 2>&1"#
            let shell = ["/bin/sh", "-c", script, try FerryProgram.path, server.baseURL + "/bytes/30000000"]
            #expect(try ChildProcess(shell + options).finish().output == "code 0\n")
            #expect(server.requestCount == 1)
        }
    }

    /// The exit code is output, too.
    @Test func plansThatNobodySeesAreRun() async throws {
        let plan = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": "a"}"#.utf8))
        let file = try TemporaryFile([])
        for option in ["--json", "--html=" + file.path] {
            try await withLoopbackServer { server in
                let line = ["run", "--base", server.baseURL, option, plan.path, plan.path, plan.path]
                let end = try run(">/dev/full", line)
                #expect(end.code == 3 && end.output == Self.fullDisk, "\(end)")
                #expect(server.requestCount == 3, "\(option)")
            }
        }
    }

    /// An open FIFO that nobody reads.
    private func withFIFO(_ body: (String, Int32) async throws -> Void) async throws {
        let path = NSTemporaryDirectory() + "ferry-fifo-\(UUID().uuidString)"
        #expect(mkfifo(path, 0o600) == 0)
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        defer {
            close(descriptor)
            unlink(path)
        }
        try await body(path, descriptor)
    }

    @Test("R119: standard output that nobody reads does not keep the process from ending at ctrl-C", .faultTable)
    func interruptedWhileBlocked() async throws {
        try await withFIFO { path, descriptor in
            try await withLoopbackServer { server in
                let script = #"exec "$0" fetch "$1" 2>&1 >"$2""#
                let shell = ["/bin/sh", "-c", script, try FerryProgram.path, server.baseURL + "/bytes/3000000", path]
                let process = try ChildProcess(shell)
                // How many bytes fill it depends on how they are written.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                while poll(&room, 1, 0) == 1 { await Task.yield() }
                process.signal(SIGINT)
                #expect(process.finish().code == 130)
            }
        }
    }

    @Test("R119: nor does it keep the process from ending at the deadline", .faultTable)
    func deadlineWhileBlocked() async throws {
        try await withFIFO { path, _ in
            try await withLoopbackServer { server in
                let script = #"exec "$0" fetch "$1" --deadline 0.5 2>&1 >"$2""#
                let shell = ["/bin/sh", "-c", script, try FerryProgram.path, server.baseURL + "/bytes/3000000", path]
                let end = try ChildProcess(shell).finish()
                #expect(end.code == 3 && end.output.contains(" within 500 ms (deadline)"), "\(end)")
            }
        }
    }
}

import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// Standard output that cannot be written.
@Suite(.timeLimit(.minutes(2))) struct OutputTests {
    /// What the command says on stderr, with its stdout somewhere else.
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

    @Test func whoeverWantsNoMoreHasWhatTheyWanted() async throws {
        try await withLoopbackServer { server in
            let script = #"{ (trap '' PIPE; "$0" fetch "$1"; echo "code $?" >&2) | head -c 3 >/dev/null; } 2>&1"#
            let shell = ["/bin/sh", "-c", script, try FerryProgram.path, server.baseURL + "/bytes/30000000"]
            #expect(try ChildProcess(shell).finish().output == "code 0\n")
        }
    }
}

import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `ferry download` and its output.
@Suite(.timeLimit(.minutes(2))) struct DownloadTests {
    private struct Report: Decodable {
        var ok: Bool
        var status: Int?
        var path: String?
        var bytes: Int64
        var total: Int64?
        var resumedFrom: Int64
        var unchanged: Bool
        var error: Fault?

        struct Fault: Decodable {
            var code: String
        }
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "ferry-download-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private var program: String {
        get throws {
            let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
            return URL(filePath: bundle).deletingLastPathComponent().appending(path: "ferry").path
        }
    }

    private func run(_ script: String, _ arguments: String...) throws -> ChildProcess.End {
        try ChildProcess(["/bin/sh", "-c", script, try program] + arguments).finish()
    }

    private func reports(_ text: String) throws -> [Report] {
        try text.split(separator: "\n").filter { $0.hasPrefix("{") }
            .map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
    }

    private func order(_ line: String...) throws -> DownloadOrder {
        try DownloadOrder(ParsedArguments(line, of: DownloadCommand.allOptions))
    }

    @Test func pathsGoOutAndNothingElseIsSaid() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let end = try run(
                    #"cd "$1" && "$0" download "$2/bytes/1000" "$2/bytes/2000" 2>&1"#, folder, server.baseURL)
                #expect(end.code == 0)
                #expect(end.output.split(separator: "\n").sorted() == ["./1000", "./2000"])
                let file = try run(#"cd "$1" && "$0" download "$2/bytes/10" -o a.bin 2>&1"#, folder, server.baseURL)
                #expect(file.output == "a.bin\n")
                #expect(FileManager.default.contents(atPath: folder + "/a.bin")?.count == 10)
            }
        }
    }

    @Test func ofTwoFilesOfOneNameNoneIsLost() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let end = try run(
                    #"cd "$1" && "$0" download "$2/bytes/1000" "$2/chunked/1000" 2>&1"#, folder, server.baseURL)
                #expect(end.code == 0)
                #expect(end.output.split(separator: "\n").sorted() == ["./1000", "./1000-1"])
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["1000", "1000-1"])
            }
        }
    }

    @Test func aCompleteFileIsNotDownloadedAgain() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let line = #""$0" download "$1/bytes/1000" -o "$2/" --json"#
                for (isUnchanged, options) in [(false, ""), (true, ""), (false, " --restart")] {
                    let end = try run(line + options, server.baseURL, folder)
                    let report = try #require(try reports(end.output).first)
                    #expect(end.code == 0 && report.ok && report.unchanged == isUnchanged && report.bytes == 1000)
                    #expect(report.status == (isUnchanged ? 304 : 200))
                    #expect(report.path?.hasSuffix(options.isEmpty ? "/1000" : "/1000-1") == true)
                }
                let order = try order(server.baseURL + "/bytes/1000", "-o", folder + "/", "-q")
                let report = await withNetworkAgent {
                    await DownloadReport(of: order.requests[0], order, by: $0, on: nil)
                }
                #expect(ProgressLine.result("1000-1", report, width: 80).contains("already complete, 1.00 kB"))
            }
        }
    }

    @Test func theLineOfAFileHasTheNameThatWasWritten() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let order = try order(server.baseURL + "/chunked/1000", "-o", folder + "/", "-q")
                await withNetworkAgent { agent in
                    for name in ["1000", "1000-1"] {
                        let report = await DownloadReport(of: order.requests[0], order, by: agent, on: nil)
                        #expect(report.name(instead: "1000") == name)
                    }
                }
                let gone = try self.order(server.baseURL + "/status/404", "-o", folder + "/", "-q")
                let report = await withNetworkAgent {
                    await DownloadReport(of: gone.requests[0], gone, by: $0, on: nil)
                }
                #expect(report.name(instead: "404") == "404")
            }
        }
    }

    @Test func whatWasInterruptedIsGoneOnWith() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let url = server.baseURL + "/bytes/400000"
                let script = #"exec "$0" download "$1" -o "$2" --limit-rate 200K --json 2>"$2.err""#
                let first = try ChildProcess(["/bin/sh", "-c", script, try program, url, folder + "/f"])
                while ((try? FileManager.default.attributesOfItem(atPath: folder + "/f.ferry-part"))?[.size] as? Int
                    ?? 0)
                    == 0
                {
                    try await Task.sleep(for: .milliseconds(5))
                }
                first.signal(SIGINT)
                let end = first.finish()
                #expect(end.code == 130)
                let report = try #require(try reports(end.output).first)
                #expect(
                    !report.ok && report.error?.code == "cancelled" && report.path == nil && report.total == 400_000)
                let part = try #require(FileManager.default.contents(atPath: folder + "/f.ferry-part"))
                #expect(part.count > 0 && part.count < 400_000)

                let second = try run(#""$0" download "$1" -o "$2" --json"#, url, folder + "/f")
                let rest = try #require(try reports(second.output).first)
                #expect(second.code == 0 && rest.ok && rest.resumedFrom == part.count && rest.bytes == 400_000)
                #expect(
                    FileManager.default.contents(atPath: folder + "/f").map(Array.init)
                        == LoopbackServer.pattern(0..<400_000))
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["f", "f.err"])
            }
        }
    }

    @Test func exitCodesAndFaults() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let status = try run(#""$0" download "$1/status/404" -o "$2/" 2>&1"#, server.baseURL, folder)
                #expect(status.code == 5 && status.output.hasSuffix(": status 404 is not accepted\n"))
                let digest = try run(
                    #""$0" download "$1/bytes/5" -o "$2/f" --sha256 "$3" --json"#, server.baseURL, folder,
                    String(repeating: "0", count: 64))
                let mismatch = try reports(digest.output).first
                #expect(digest.code == 4 && mismatch?.error?.code == "contentMismatch")
                let count = server.requestCount
                for (target, reason) in [
                    ("none/f", "No such file or directory"), ("none/", "No such file or directory"),
                    ("loop", "Too many levels of symbolic links"),
                ] {
                    try FileManager.default.createSymbolicLink(atPath: folder + "/loop", withDestinationPath: "loop")
                    defer { try? FileManager.default.removeItem(atPath: folder + "/loop") }
                    let path = "\(folder)/\(target)"
                    let line = try run(#""$0" download "$1/bytes/5" -o "$2" 2>&1"#, server.baseURL, path)
                    let text = "ferry download: cannot write \(path): \(reason)\n"
                    #expect(line.code == 2 && line.output == text, "\(line)")
                }
                let broken = try run(#""$0" download "http://a b/" -o "$1" 2>&1"#, folder)
                let text = "ferry download: invalid URL \"http://a b/\": space at position 9\n"
                #expect(broken.code == 1 && broken.output == text, "\(broken)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
                #expect(server.requestCount == count)
                for line in [
                    "", "http://h/ -o /dev/nothing http://i/", "http://h/ --sha256 abc", "http://h/ --limit-rate x",
                    "http://h/ ftp://h/",
                ] {
                    #expect(try run(#""$0" download \#(line) 2>/dev/null"#).code == 1, "\(line)")
                }
            }
        }
    }

    @Test func theFileThatALinkNamesIsReplacedOrCreated() async throws {
        try await withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder + "/in", withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: folder + "/a", withDestinationPath: "in/b")
            try FileManager.default.createSymbolicLink(atPath: folder + "/in/b", withDestinationPath: folder + "/c")
            try await withLoopbackServer { server in
                for size in [10, 20] {
                    let end = try run(#""$0" download "$1" -o "$2""#, server.baseURL + "/bytes/\(size)", folder + "/a")
                    #expect(end.code == 0 && end.output == folder + "/c\n", "\(end)")
                    #expect(FileManager.default.contents(atPath: folder + "/c")?.count == size)
                }
            }
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder + "/a") == "in/b")
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder + "/in/b") == folder + "/c")
        }
    }

    @Test func whatIsNoRegularFileIsNotReplaced() async throws {
        try await withFolder { folder in
            try FileManager.default.createSymbolicLink(atPath: folder + "/null", withDestinationPath: "/dev/null")
            #expect(mkfifo(folder + "/fifo", 0o600) == 0)
            for path in [folder + "/null", folder + "/fifo", "/dev/stdout", "/dev/null", "/proc/self/fd/1"] {
                // Nothing is sent: there is no server.
                let end = try run(#""$0" download http://127.0.0.1:1/ -o "$1" 2>&1"#, path)
                #expect(end.code == 1 && end.output.contains("\(path) is not a regular file"), "\(end)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["fifo", "null"])
            #expect(throws: Never.self) { try order("http://h/", "-o", "/dev/shm/ferry-nothing") }
        }
    }

    @Test func aFileThatAnotherDownloadWritesIsSaidSo() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let (url, target) = (server.baseURL + "/bytes/400000", folder + "/f")
                let first = try ChildProcess([try program, "download", url, "-o", target, "--limit-rate", "20K"])
                while !FileManager.default.fileExists(atPath: target + ".ferry-part") {
                    try await Task.sleep(for: .milliseconds(5))
                }
                let second = try run(#""$0" download "$1" -o "$2" 2>&1"#, url, target)
                let text = "cannot write f: another download writes the same file\n"
                #expect(second.code == 3 && second.output.hasSuffix(text), "\(second)")
                first.signal(SIGINT)
                #expect(first.finish().code == 130)
            }
        }
    }

    @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
    func afterASignalThereIsAnObjectForEachFile(signal: Int32, code: Int32) async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let second = server.baseURL.replacing("//", with: "//u:pw@") + "/hello?token=s3cret"
                let line = [try program, "download", "--json", "--at-once", "1", "-o", folder]
                let process = try ChildProcess(line + [server.baseURL + "/delay/60000", second])
                try await server.waitForRequests(1)
                process.signal(signal)
                // As timeout(1) does.
                if signal == SIGTERM { process.signal(signal) }
                let end = process.finish()
                let reports = try reports(end.output)
                #expect(end.code == code && reports.map(\.error?.code) == ["cancelled", "cancelled"], "\(end)")
                #expect(!end.output.contains("pw@") && !end.output.contains("s3cret") && server.requestCount == 1)
            }
        }
    }

    @Test func theOrderIsRead() throws {
        #expect(try order("http://h/", "-o", "/tmp").target == .directory("/tmp"))
        #expect(throws: InputError.self) { try order("http://h/", "-o", "/tmp/nothing/") }
        #expect(try order("http://h/", "-o", "/tmp/nothing-there").target == .file("/tmp/nothing-there"))
        #expect(try order("http://h/").target == .directory("."))
        let once = try order("http://h/a", "http://i/", "http://h/a#b")
        #expect(once.requests.map(\.path) == ["http://h/a", "http://i/"])
        let rates = ["500": 500, "500k": 500_000, "2M": 2_000_000, "1G": 1_000_000_000]
        for (text, bytes) in rates {
            #expect(try order("http://h/", "--limit-rate", text).options.bytesPerSecond == bytes)
        }
        #expect(try order("http://h/", "--restart").options.resumes == false)
        for text in ["0", "-1", "K", "1X", "99999999999999999999", "9999999999999999G"] {
            #expect(throws: UsageError.self) { try order("http://h/", "--limit-rate", text) }
        }
    }

    @Test(arguments: [1, 5, 20, 40, 80, 100, 200])
    func noLineIsWiderThanTheTerminal(width: Int) {
        let names = ["f", "a-name-that-is-rather-long-for-a-file-of-this-kind.tar.gz", "日本語のファイル名.zip", ""]
        for name in names {
            for total in [nil, 0, 1000, 5_000_000_000] as [Int64?] {
                for received: Int64 in [0, 999, 5_000_000_000] {
                    let progress = DownloadProgress(
                        received: received, total: total, rate: 12_345_678, resumedFrom: 0, isResumable: true)
                    for progress in [progress, nil] {
                        let line = ProgressLine.underWay(name, progress, width: width)
                        #expect(TerminalText.width(line) <= max(width - 1, 1), "\(line)")
                    }
                }
            }
        }
        let half = DownloadProgress(received: 500, total: 1000, rate: 100, resumedFrom: 0, isResumable: true)
        let line = ProgressLine.underWay("f", half, width: 80)
        #expect(line.contains("=>") && line.contains("50%") && line.contains("0:05") && line.contains("100 B/s"))
    }

    @Test func bytesAndTimesInWords() {
        let bytes: [(Int64, String)] = [
            (0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (12_400, "12.4 kB"), (870_000, "870 kB"),
            (1_250_000_000, "1.25 GB"),
        ]
        for (count, text) in bytes { #expect(bytesText(count) == text) }
        #expect(clockText(.seconds(7)) == "0:07" && clockText(.seconds(750)) == "12:30")
        #expect(clockText(.seconds(3723)) == "1:02:03")
        #expect(TerminalText.cut("日本語", to: 5) == "日本…" && TerminalText.cut("abc", to: 0) == "")
    }
}

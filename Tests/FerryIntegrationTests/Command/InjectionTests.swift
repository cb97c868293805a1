import FerryTesting
import Foundation
import Injection
import Testing

/// The command while system calls fail: it gives the right result or an error with its code, but never a signal, a
/// hang, or a partial file under the file's own name.
@Suite(.timeLimit(.minutes(5)), .enabled(if: Injection.isPossible)) struct InjectionTests {
    private static let size = 700_000

    private static let injections = Injection.single + Injection.memory + Injection.memoryOfRequest + Injection.random

    private let folder: ServerFolder
    private let server: LoopbackServer

    init() throws {
        folder = try ServerFolder()
        server = try LoopbackServer()
    }

    @Test func theInjectionReachesTheProgram() throws {
        let refused = try Injection.call(1, of: "connect").run(["fetch", "--json", url(300)])
        #expect(try refused.reports.first?.error?.code == "connect")
        let starved = try Injection.call(1, of: "malloc").run(["fetch", "--json", url(300)])
        #expect(try starved.reports.first?.error?.code == "internalError")
        for function in ["eventfd", "pthread_create", "epoll_ctl"] {
            let idle = try Injection.call(1, of: function).run(["fetch", "--json", url(300)])
            #expect(try idle.reports.first?.error?.code == "internalError", "\(function): \(idle)")
        }
        let unwatched = try Injection.call(2, of: "epoll_ctl").run(["fetch", "--json", url(300)])
        #expect(try unwatched.reports.first?.error?.code == "connect", "\(unwatched)")
        let path = folder.file("file")
        for function in ["flock", "open", "pwrite", "fsync", "rename"] {
            let full = try Injection.call(1, of: function).run(["download", url(Self.size), "-o", path])
            #expect(full.code == 3 && full.error.contains("cannot write"), "\(function): \(full)")
            #expect(!full.error.contains("could not be read or written"), "\(function): \(full)")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test(arguments: injections) func fetch(injection: Injection) throws {
        let outcome = try injection.run(["fetch", "--json", url(300)])
        try expectReports(outcome, length: 300, count: 1)
    }

    @Test(arguments: injections) func download(injection: Injection) throws {
        let path = folder.file("file")
        let outcome = try injection.run(["download", url(Self.size), "-o", path])
        #expect(outcome.code == 0 || outcome.code == 3, "\(outcome)")
        #expect(outcome.code == 0 || !outcome.error.isEmpty)
        if outcome.code == 0 || FileManager.default.fileExists(atPath: path) { try expectFile(path) }
        // The remaining files are usable, or moved aside.
        let second = try FerryCommand.run("download", url(Self.size), "-o", path)
        #expect(second.code == 0, "\(second)")
        try expectFile(path)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("file") } == ["file"]
        )
    }

    @Test(arguments: injections) func downloadInSegments(injection: Injection) throws {
        let path = folder.file("file")
        let large = 3_000_000
        let outcome = try injection.run(["download", url(large), "-o", path, "--segments", "3"])
        #expect(outcome.code == 0 || outcome.code == 3, "\(outcome)")
        if outcome.code == 0 || FileManager.default.fileExists(atPath: path) { try expectFile(path, large) }
    }

    @Test(arguments: injections) func cachedFetch(injection: Injection) throws {
        let arguments = ["fetch", "--json", "--cache-dir", folder.file("cache"), "--cache-ttl", "60", url(300)]
        let outcome = try injection.run(arguments + ["--repeat", "3"])
        try expectReports(outcome, length: 300, count: 3)
        // An error of the cache stays in the cache.
        if Injection.files.contains(where: { injection.description.hasPrefix($0 + "@") }) {
            #expect(outcome.code == 0, "\(outcome)")
        }
        let second = try FerryCommand.run(arguments)
        try expectReports(second, length: 300, count: 1)
        #expect(second.code == 0, "\(second)")
    }

    private func url(_ length: Int) -> String { server.baseURL + "/bytes/\(length)" }

    private func expectReports(_ outcome: FerryCommand.Outcome, length: Int, count: Int) throws {
        #expect(outcome.code == 0 || outcome.code == 3, "\(outcome)")
        let reports = try outcome.reports
        #expect(reports.count == count, "\(outcome)")
        for report in reports {
            if report.ok {
                #expect(report.sha256 == sha256(LoopbackServer.pattern(0..<length)))
            } else {
                #expect(report.error.map { !$0.code.isEmpty && !$0.message.isEmpty } ?? false, "\(outcome)")
            }
        }
    }

    private func expectFile(_ path: String, _ length: Int = size) throws {
        let bytes = try Data(contentsOf: URL(filePath: path))
        #expect(bytes == Data(Self.pattern.prefix(length)), "\(bytes.count) bytes")
    }

    private static let pattern = LoopbackServer.pattern(0..<3_000_000)
}

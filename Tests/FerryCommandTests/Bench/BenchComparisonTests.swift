import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

@Suite(.timeLimit(.minutes(2))) struct BenchComparisonTests {
    @Test func figuresStandBesideEachOther() throws {
        var report = madeReport()
        #expect(BenchComparison(report) == nil)
        var latencies = Histogram()
        for value in 1...100 as ClosedRange<UInt64> { latencies.record(value * 1_000_000) }
        report.comparison = RivalReport(
            name: "URLSession", latencies: latencies, failed: 0, seconds: 1, usage: .zero, memory: 65_536)
        let comparison = try #require(BenchComparison(report))
        #expect(comparison.lines[0] == .init(name: "responses/s", ours: "1,000", theirs: "100", ratio: "10.00 ×"))
        #expect(comparison.lines.first { $0.name == "memory" }?.ratio == "0.50 ×")
        #expect(comparison.lines.first { $0.name == "CPU per request" }?.ratio == "–")
        #expect(BenchTable(report).text.contains("URLSession") && madePage(report).contains("Compared with URLSession"))
    }

    /// Uses the built programs, which are in the same folder.
    @Test func urlSessionIsAskedTheSame() async throws {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let folder = URL(filePath: bundle).deletingLastPathComponent()
        try await withLoopbackServer { server in
            let line = [
                folder.appending(path: "ferry").path, "bench", server.baseURL + "/hello", "-n", "20", "-c", "2", "-H",
                "X-A: b", "--compare", "urlsession", "--json",
            ]
            #if FERRY_ASAN
            // URLSession does not free all of libcurl's URLs.
            let environment = ["ASAN_OPTIONS": "detect_leaks=0"]
            #else
            let environment: [String: String] = [:]
            #endif
            let end = try ChildProcess(line, environment: environment).finish()
            #expect(end.code == 0)
            let report = try JSONDecoder().decode(BenchReport.self, from: Data(end.output.utf8))
            #expect(report.ok == 20 && report.comparison?.ok == 20 && report.comparison?.name == "URLSession")
            #expect(server.requestCount == 40 && server.requests.allSatisfy { $0.headers["X-A"] == "b" })
        }
    }

    @Test func whatTheOtherClientCannotDoIsRefused() async {
        let digest = String(repeating: "a", count: 64)
        for line in [["-r", "5"], ["-d", "x"], ["-k"], ["--schema", "f"], ["--expect-sha256", digest]] {
            #expect(await Main.run(["bench", "http://127.0.0.1:1/", "--compare", "urlsession"] + line) != .success)
        }
        #expect(await Main.run(["bench", "--compare", "netscape"]) == .usage)
    }

    /// The command beside another client, which is a script.
    private func withRival(_ script: String, _ body: (_ ferry: String, _ folder: String) async throws -> Void)
        async throws
    {
        let program = try FerryProgram.path
        // On the same file system, for a link.
        let folder = URL(filePath: program).deletingLastPathComponent().path + "/rival-\(UUID().uuidString)"
        let manager = FileManager.default
        try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? manager.removeItem(atPath: folder) }
        try manager.linkItem(atPath: program, toPath: folder + "/ferry")
        try "#!/bin/sh\n\(script)\n".write(toFile: folder + "/FerryBenchmarks", atomically: true, encoding: .utf8)
        try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder + "/FerryBenchmarks")
        try await body(folder + "/ferry", folder)
    }

    @Test func theMeasurementIsToldWhenTheOtherClientIsCutOff() async throws {
        // It ends with its standard input at the latest.
        try await withRival(#"touch "$0.started"; exec cat"#) { ferry, folder in
            try await withLoopbackServer { server in
                let json = folder + "/report.json"
                let process = try ChildProcess([
                    ferry, "bench", server.baseURL + "/hello", "-n", "20", "--compare", "urlsession", "--json=" + json,
                ])
                while !FileManager.default.fileExists(atPath: folder + "/FerryBenchmarks.started") { usleep(500) }
                process.signal(SIGINT)
                let end = process.finish()
                #expect(end.code == 130 && end.output.contains("20 ok, 0 failed"), "\(end)")
                let data = try #require(FileManager.default.contents(atPath: json))
                let report = try JSONDecoder().decode(BenchReport.self, from: data)
                #expect(report.ok == 20 && report.comparison == nil)
            }
        }
    }

    @Test func theMeasurementIsToldWhenTheOtherClientFails() async throws {
        try await withRival("exit 7") { ferry, _ in
            try await withLoopbackServer { server in
                let end = try ChildProcess([
                    ferry, "bench", server.baseURL + "/hello", "-n", "20", "--compare", "urlsession",
                ]).finish()
                #expect(end.code == 2 && end.output.contains("20 ok, 0 failed"), "\(end)")
            }
        }
    }
}

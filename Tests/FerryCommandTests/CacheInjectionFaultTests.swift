import FaultTable
import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Injection
import Testing

@testable import FerryCommand

/// Requests cached on a disk whose calls fail: row R102.
@Suite(.timeLimit(.minutes(2)), .faultTable, .enabled(if: Injection.isPossible)) struct CacheInjectionFaultTests {
    private struct Report: Decodable {
        var ok: Bool
        var sha256: String?
        var fromCache: Bool
    }

    private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-disk-\(UUID().uuidString)").path

    /// The failures as seen by readers and writers of the cache: ENOSPC, EIO, EACCES.
    private static let faults: [Injection] =
        [
            .all(of: "pwrite", "write"), .all(of: "pread"), .all(of: "fsync", "fdatasync"), .all(of: "ftruncate"),
            .all(of: "open"), .all(of: "pwrite", "write", "pread", "fsync", "fdatasync", "ftruncate", "open"),
        ] + ["pwrite", "pread", "ftruncate", "open"].flatMap { name in (1...6).map { .call($0, of: name) } }

    @Test(
        "R102: with a full, failing or read-only disk every request gets its response",
        arguments: faults)
    func everyRequestIsAnswered(injection: Injection) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try LoopbackServer()
        let arguments = ["fetch", "--json", "--cache-dir", folder, "--cache-ttl", "60", server.baseURL + "/bytes/3000"]
        let digest = SHA256.hexadecimal(of: LoopbackServer.pattern(0..<3000))
        let began = ContinuousClock.now
        let failing = try reports(arguments + ["--repeat", "3"], injection.environment)
        FaultNote.add(form: "buffered", outcome: FaultNote.answered, took: .now - began)
        #expect(failing.count == 3)
        // The remaining files do no harm to the next process, whose disk works.
        let sound = try reports(arguments + ["--repeat", "2"])
        #expect(sound.last?.fromCache == true)
        for report in failing + sound {
            #expect(report.ok && report.sha256 == digest)
        }
    }

    private func reports(_ arguments: [String], _ environment: [String: String] = [:]) throws -> [Report] {
        let end = try FerryProgram.run(arguments, environment: environment)
        #expect(end.code == 0, "\(end.output)")
        return try end.output.split(separator: "\n").map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
    }
}

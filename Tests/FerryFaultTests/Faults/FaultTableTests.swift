import FaultTable
import Foundation
import Testing

@testable import FerryTestSupport

/// The page of the manual that the tests generate: `make faults` writes it, `make test` checks whether it is still
/// correct. Both have run the tests before, and `FERRY_FAULTS` names the file with their notes.
@Suite struct FaultTableTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    private static let page = root + "/Sources/Ferry/Documentation.docc/Faults.md"

    /// What to do with the page.
    private enum Work: String {
        case write
        /// All cases except those that need real servers.
        case check
        /// Only those.
        case checkServers = "check-servers"
    }

    private static let work = ProcessInfo.processInfo.environment["FERRY_FAULT_TABLE"].flatMap(Work.init(rawValue:))

    private var notes: [FaultNote] { get throws { try FaultNotes.read(#require(FaultNotes.path)) } }

    private func committed() throws -> String { try String(contentsOfFile: Self.page, encoding: .utf8) }

    @Test(.enabled(if: work == .write)) func thePageIsWritten() throws {
        let noted = Set(try notes.map(\.row))
        let missing = FaultRow.areas.flatMap(\.rows).map(\.number).filter { !noted.contains($0) }
        try #require(missing.isEmpty, "no test of \(missing)")
        try FaultArticle(notes).text.write(toFile: Self.page, atomically: true, encoding: .utf8)
    }

    @Test(.enabled(if: work == .check || work == .checkServers)) func thePageIsWhatTheTestsFound() throws {
        let made = try FaultArticle(notes).text.split(separator: "\n", omittingEmptySubsequences: false)
        let there = try committed().split(separator: "\n", omittingEmptySubsequences: false)
        try #require(made.count == there.count, "make faults writes it anew")
        let others = FaultRow.areas.filter { $0.needsServers != (Self.work == .checkServers) }.flatMap(\.rows)
        for (made, there) in zip(made, there) where !others.contains(where: { made.hasPrefix("| \($0.number) |") }) {
            #expect(made == there, "make faults writes it anew")
        }
    }

    @Test func everyCaseStandsOnThePageOnce() throws {
        let page = try committed()
        let rows = FaultRow.areas.flatMap(\.rows)
        #expect(Set(rows.map(\.number)).count == rows.count)
        for row in rows {
            #expect(page.contains("| \(row.number) | \(row.setup) | \(row.promise) |"), "make faults writes it anew")
        }
    }
}

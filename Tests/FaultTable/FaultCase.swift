import FerrySynchronization

/// A running test, the cases that it belongs to, and the notes about them.
final class FaultCase: Sendable {
    @TaskLocal static var current: FaultCase?

    private let rows: [String]
    private let kept = Mutex<[FaultNote]>([])

    /// The numbers are at the start of the test's name: `R03, R04: an invalid chunk size is malformed`.
    init?(testName: String) {
        guard let claim = testName.firstIndex(of: ":") else { return nil }
        rows = testName[..<claim].split(separator: ", ").map(String.init)
        guard rows.allSatisfy({ $0.wholeMatch(of: /R[0-9]{2,3}/) != nil }) else { return nil }
    }

    var notes: [FaultNote] { kept.withLock { $0 } }

    func add(form: String?, outcome: String?, reason: String?, milliseconds: Int?) {
        kept.withLock { notes in
            notes += rows.map {
                FaultNote(row: $0, form: form, outcome: outcome, reason: reason, milliseconds: milliseconds)
            }
        }
    }
}

import FoundationEssentials
public import Testing

/// Writes the notes that the tests of a suite make about their cases to the file that `FERRY_FAULTS` names, one line of
/// JSON each.
///
/// The numbers of the cases are at the start of the tests' names. A test without a note is noted as one that held.
public struct FaultTableTrait: SuiteTrait, TestTrait, TestScoping {
    /// It applies to the tests in the suite.
    public let isRecursive = true

    /// Runs one case of a test and writes its notes.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil, let found = FaultCase(testName: test.displayName ?? "") else {
            return try await function()
        }
        let began = ContinuousClock.now
        try await FaultCase.$current.withValue(found) { try await function() }
        if found.notes.isEmpty {
            found.add(
                form: nil, outcome: FaultNote.held, reason: nil,
                milliseconds: Int((ContinuousClock.now - began) / .milliseconds(1)))
        }
        try FaultNotes.append(found.notes)
    }
}

extension Trait where Self == FaultTableTrait {
    /// The cases of this suite are in the manual's table.
    public static var faultTable: FaultTableTrait { FaultTableTrait() }
}

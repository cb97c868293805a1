import Foundation

/// Tests that repeat one thing many times. `make test` runs a share of the repetitions, `make test-long` runs all: it
/// sets `FERRY_LONG_TESTS`.
public enum LongTests {
    /// Whether all repetitions are run.
    public static let areOn = ProcessInfo.processInfo.environment["FERRY_LONG_TESTS"] != nil

    /// How often to repeat.
    public static func count(_ long: Int, share: Int) -> Int { areOn ? long : share }
}

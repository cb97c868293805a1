internal import FerryMeasurement

/// What came of one condition of `--fail-if`, of one that is met too: who reads a report sees what it was held to.
///
/// Times are microseconds, memory is kilobytes.
struct BenchCheck: Codable, Sendable, Equatable {
    enum Verdict: String, Codable, Sendable {
        /// The condition does not hold.
        case ok
        case failed
    }

    /// As it was written, without blanks.
    var condition: String
    /// Its name.
    var figure: String
    /// What it is.
    var value: Double
    /// What it is compared with, a change or a share worked out.
    var limit: Double
    /// The same figure of the baseline; `nil` where the condition is not about it.
    var baseline: Double?
    var verdict: Verdict

    /// For standard error and the page; `nil` when all is well.
    var complaint: String? {
        if verdict == .ok { return nil }
        return "\(condition): \(figure) is \(shown(value))\(baseline.map { ", the baseline has \(shown($0))" } ?? "")"
    }

    /// For a row of its own.
    var explanation: String {
        "\(figure) is \(shown(value)), the limit \(shown(limit))"
            + (baseline.map { ", the baseline has \(shown($0))" } ?? "")
    }

    private func shown(_ value: Double) -> String {
        BenchThreshold.Figure.named(figure)?.shown(value) ?? fixed(value, 1)
    }
}

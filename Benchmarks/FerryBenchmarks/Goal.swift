/// One figure the engine is to reach, and what was measured.
struct Goal: Codable, Sendable {
    var text: String
    var limit: Double
    /// Whether the limit is an upper one.
    var isAtMost = true
    /// What is held against the limit; `nil` when its case was not run.
    var measured: Double?
    /// What that is, where it is no ratio.
    var unit: String?
    /// Of a ratio, or of a difference in `unit`, both sides, medians over the rounds.
    var sides: Sides?

    /// The ratio is the median of those of each round, and so not always quite the one of these two.
    struct Sides: Codable, Sendable {
        var own: Double
        var other: Double
        var unit: String
    }

    var isReached: Bool? {
        measured.map { isAtMost ? $0 <= limit : $0 >= limit }
    }

    /// How much of a limit that is no ratio was used; `nil` of none.
    var ratio: Double? {
        if unit == nil { return measured }
        return limit == 0 ? nil : measured.map { $0 / limit }
    }
}

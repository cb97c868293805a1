/// One goal for the engine, and its measured figure.
struct Goal: Codable, Sendable {
    var text: String
    var limit: Double
    /// Whether the limit is an upper one.
    var isAtMost = true
    /// The figure compared with the limit; `nil` if its case was not run.
    var measured: Double?
    /// The unit, if it is no ratio.
    var unit: String?
    /// For a ratio, or a difference in `unit`: both sides, as medians over the rounds.
    var sides: Sides?

    /// The ratio is the median of those of each round, so it may differ slightly from that of these two.
    struct Sides: Codable, Sendable {
        var own: Double
        var other: Double
        var unit: String
    }

    var isReached: Bool? {
        measured.map { isAtMost ? $0 <= limit : $0 >= limit }
    }

    /// The used share of a limit that is no ratio; `nil` for a ratio.
    var ratio: Double? {
        if unit == nil { return measured }
        return limit == 0 ? nil : measured.map { $0 / limit }
    }
}

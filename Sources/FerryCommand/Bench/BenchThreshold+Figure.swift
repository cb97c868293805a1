internal import FerryMeasurement

extension BenchThreshold {
    /// A figure of a report that a condition may be about.
    struct Figure: Sendable, Equatable {
        enum Unit: Sendable, Equatable {
            /// Microseconds; written with `us`, `µs`, `ms` or `s`.
            case time
            case count
            /// Kilobytes; written with `KB`, `MB` or `GB`.
            case memory
        }

        let name: String
        let unit: Unit
        /// Whether `1%` means a share of the requests.
        var isShareOfRequests = false

        static let all =
            (BenchReport.percents.map(\.name) + ["max", "mean"]).map { Figure(name: $0, unit: .time) } + [
                Figure(name: "rps", unit: .count),
                Figure(name: "requests", unit: .count),
                Figure(name: "failed", unit: .count, isShareOfRequests: true),
                Figure(name: "wrong", unit: .count, isShareOfRequests: true),
                Figure(name: "cpu", unit: .time),
                Figure(name: "memory", unit: .memory),
                Figure(name: "connections", unit: .count),
            ]

        static var names: [String] { all.map(\.name) }

        static func named(_ name: String) -> Figure? { all.first { $0.name == name } }

        func shown(_ value: Double) -> String {
            switch unit {
            case .time: durationText(nanoseconds: wholeNumber(value * 1000))
            case .count: grouped(wholeNumber(value))
            case .memory: fixed(value / 1024, 1) + " MB"
            }
        }
    }
}

extension BenchThreshold.Figure.Unit {
    /// What a text of this unit is called in messages.
    var what: String {
        switch self {
        case .time: "time, such as 250ms"
        case .count: "number"
        case .memory: "size, such as 64MB"
        }
    }

    /// `nil` when the text is not of it.
    func value(of text: String) -> Double? {
        let units: [(String, Double)] =
            switch self {
            case .time: [("us", 1), ("µs", 1), ("ms", 1e3), ("s", 1e6)]
            case .count: [("", 1)]
            case .memory: [("KB", 1), ("MB", 1024), ("GB", 1_048_576)]
            }
        guard let (ending, factor) = units.first(where: { text.hasSuffix($0.0) }),
            let number = BenchThreshold.number(text.dropLast(ending.count))
        else { return nil }
        return number * factor
    }
}

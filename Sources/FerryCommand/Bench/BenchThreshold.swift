internal import FerryMeasurement

/// One condition of `--fail-if`: a figure, a comparison and a limit.
///
/// `p99>250ms` compares with a value; `p99>+10%` with 110 % of the baseline's figure; `failed>1%` with a share of the
/// requests.
struct BenchThreshold: Sendable, Equatable {
    enum Comparison: String, Sendable, CaseIterable {
        // The longer ones first, because they are tried in this order.
        case atLeast = ">="
        case atMost = "<="
        case above = ">"
        case below = "<"

        func holds(_ figure: Double, _ limit: Double) -> Bool {
            switch self {
            case .atLeast: figure >= limit
            case .atMost: figure <= limit
            case .above: figure > limit
            case .below: figure < limit
            }
        }
    }

    enum Limit: Sendable, Equatable {
        /// A value in the unit of the figure.
        case value(Double)
        /// A relative change against the baseline's figure: 0.1 for 10 % more.
        case change(Double)
        /// A share of all requests, from 0 to 1.
        case share(Double)
    }

    /// The condition as written, without blanks.
    let text: String
    let figure: Figure
    let comparison: Comparison
    let limit: Limit

    var needsBaseline: Bool {
        if case .change = limit { true } else { false }
    }

    init(_ text: String) throws(UsageError) {
        let text = String(text.filter { $0 != " " && $0 != "\t" })
        self.text = text
        guard let sign = text.firstIndex(where: { $0 == ">" || $0 == "<" }) else {
            throw UsageError("--fail-if: '\(text)' has no >, <, >= or <=")
        }
        let rest = text[sign...]
        guard let comparison = Comparison.allCases.first(where: { rest.hasPrefix($0.rawValue) }) else {
            throw UsageError("--fail-if: '\(text)' has no >, <, >= or <=")
        }
        let name = String(text[..<sign])
        guard let figure = Figure.named(name) else {
            throw UsageError("--fail-if: unknown figure '\(name)'; known are \(Figure.names.joined(separator: ", "))")
        }
        self.figure = figure
        self.comparison = comparison
        limit = try Self.limit(String(rest.dropFirst(comparison.rawValue.count)), of: figure, in: text)
    }

    /// Checks a report. `nil` if the condition needs a baseline and there is none.
    func check(_ report: some BenchMeasurement, baseline: BenchReport? = nil) -> BenchCheck? {
        let found = report.value(of: figure)
        var limit: Double
        var before: Double?
        switch self.limit {
        case .value(let value): limit = value
        case .share(let share): limit = share * Double(report.requests)
        case .change(let change):
            guard let baseline else { return nil }
            let value = baseline.value(of: figure)
            limit = value * (1 + change)
            before = value
        }
        // JSON has no infinity.
        limit = min(max(limit, -.greatestFiniteMagnitude), .greatestFiniteMagnitude)
        return BenchCheck(
            condition: text, figure: figure.name, value: found, limit: limit, baseline: before,
            verdict: comparison.holds(found, limit) ? .failed : .ok)
    }

    private static func limit(_ limit: String, of figure: Figure, in text: String) throws(UsageError) -> Limit {
        let isSigned = limit.hasPrefix("+") || limit.hasPrefix("-")
        if limit.hasSuffix("%"), let percent = Self.number(limit.dropLast()) {
            if isSigned { return .change(percent / 100) }
            if figure.isShareOfRequests { return .share(percent / 100) }
            throw UsageError("--fail-if: '\(text)' must be +\(limit) or -\(limit), a change against the baseline")
        }
        if !isSigned, let value = figure.unit.value(of: limit) { return .value(value) }
        throw UsageError("--fail-if: '\(text)': '\(limit)' is not a \(figure.unit.what)")
    }

    /// A finite number: `Double` also parses `nan` and `inf`.
    static func number(_ text: some StringProtocol) -> Double? {
        guard let number = Double(String(text)), number.isFinite else { return nil }
        return number
    }
}

extension BenchThreshold {
    /// A figure of a report that conditions can use.
    struct Figure: Sendable, Equatable {
        enum Unit: Sendable, Equatable {
            /// Microseconds, written with `us`, `µs`, `ms` or `s`.
            case time
            case count
            /// Kilobytes, written with `KB`, `MB` or `GB`.
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
    /// The name of the unit in messages.
    var what: String {
        switch self {
        case .time: "time, such as 250ms"
        case .count: "number"
        case .memory: "size, such as 64MB"
        }
    }

    /// Parses a value with its unit; `nil` if the text has another form.
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

/// A measurement that conditions can check.
protocol BenchMeasurement {
    /// The number of requests, of which `failed>1%` is a share.
    var requests: UInt64 { get }

    func value(of figure: BenchThreshold.Figure) -> Double
}

extension BenchReport: BenchMeasurement {
    func value(of figure: BenchThreshold.Figure) -> Double {
        switch figure.name {
        case "rps": rps
        case "requests": Double(requests)
        case "failed": Double(failed)
        case "wrong": Double(wrongBodies)
        case "cpu": cpu.values.reduce(0, +)
        case "memory": Double(memory)
        case "connections": Double(connections)
        default: latency[figure.name] ?? 0
        }
    }
}

internal import FerryMeasurement

/// One condition of `--fail-if`: a figure, how it compares, and with what.
///
/// `p99>250ms` compares with a value; `p99>+10%` with the baseline's figure and a tenth of it; `failed>1%` with a share
/// of the requests.
struct BenchThreshold: Sendable, Equatable {
    enum Comparison: String, Sendable, CaseIterable {
        // The longer ones first, as they are looked for in this order.
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
        /// In the unit of the figure.
        case value(Double)
        /// Of the baseline's figure, as a change of so many parts of it.
        case change(Double)
        /// Of all requests.
        case share(Double)
    }

    /// As it was written, without blanks.
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
            throw UsageError("--fail-if: unknown figure '\(name)'; there are \(Figure.names.joined(separator: ", "))")
        }
        self.figure = figure
        self.comparison = comparison
        limit = try Self.limit(String(rest.dropFirst(comparison.rawValue.count)), of: figure, in: text)
    }

    /// What a report says to it; `nil` where it is about a baseline, and there is none.
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
            throw UsageError("--fail-if: '\(text)' wants +\(limit) or -\(limit), against the baseline")
        }
        if !isSigned, let value = figure.unit.value(of: limit) { return .value(value) }
        throw UsageError("--fail-if: '\(text)': '\(limit)' is no \(figure.unit.what)")
    }

    /// No `nan` or `inf`, which a `Double` takes for numbers.
    static func number(_ text: some StringProtocol) -> Double? {
        guard let number = Double(String(text)), number.isFinite else { return nil }
        return number
    }
}

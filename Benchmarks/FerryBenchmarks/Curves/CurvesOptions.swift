/// The command line of `FerryBenchmarks curves`.
struct CurvesOptions {
    /// The variable of a curve.
    enum Kind: String, CaseIterable {
        case concurrency, bodies, cache
    }

    /// The folder for the plots; `nil` for none.
    var folder: String? = "Benchmarks/Results"
    var rounds = 3
    var kinds = Kind.allCases
    var mostEntries = 1_000_000
    /// The number of requests.
    var scale = 1.0

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        var chosen: [Kind] = []
        while let name = rest.popFirst() {
            guard ["--output", "--curve", "--rounds", "--entries", "--scale"].contains(name) else {
                throw BenchmarkError("curves: unknown option \(name); see --help")
            }
            guard let value = rest.popFirst() else { throw BenchmarkError("curves: \(name) needs a value") }
            switch name {
            case "--output": folder = value == "none" ? nil : value
            case "--curve":
                guard let kind = Kind(rawValue: value) else {
                    throw BenchmarkError("curves: concurrency, bodies or cache, not \(value)")
                }
                chosen.append(kind)
            case "--rounds": rounds = try Self.positive(value, of: name)
            case "--entries": mostEntries = try Self.positive(value, of: name)
            default:
                guard let number = Double(value), number > 0, number.isFinite else {
                    throw BenchmarkError("curves: --scale must be a number above 0, not \(value)")
                }
                scale = number
            }
        }
        if !chosen.isEmpty { kinds = Kind.allCases.filter(chosen.contains) }
    }

    private static func positive(_ value: String, of name: String) throws -> Int {
        guard let number = Int(value), number > 0 else {
            throw BenchmarkError("curves: \(name) must be a whole number above 0, not \(value)")
        }
        return number
    }
}

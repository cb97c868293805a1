/// The command line of the harness.
struct Options {
    var cases: [String] = []
    var rounds = 5
    var usesNginx = true
    var scale = 1.0
    var output: String? = "Benchmarks/Results"
    var wantsList = false
    var wantsMarkdown = false

    static let help = """
        Usage: FerryBenchmarks [OPTIONS]
               FerryBenchmarks json [ROUNDS [SAMPLE [WAY]]]
               FerryBenchmarks curves [--curve NAME] [--rounds N] [--entries N] [--scale F]
                                     [--output FOLDER]
               FerryBenchmarks soak [--time TIME] [--output FOLDER] [--alone]

        Measures Ferry beside its rivals in one run and prints ratios: among them wrk, Go's net/http and curl's parallel
        mode where they are installed. The second form measures JSON alone. The third plots how the cost grows with
        requests at once (concurrency), sizes (bodies) and entries (cache, --entries of them at most). The fourth has
        everything at once with faults on, for five minutes (90s, 5m, 1h), beside URLSession unless --alone.

          --case NAME         only this case; may be repeated (see --list)
          --rounds N          rounds over all cases and rivals; medians are taken (5)
          --server KIND       nginx (where installed) or loopback
          --scale F           F times the requests (1)
          --output FOLDER     where the dated JSON goes (Benchmarks/Results); none: nowhere
          --markdown          prints the tables of the manual, too
          --list              names the cases
          --help              prints this

        """

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            switch name {
            case "--list": wantsList = true
            case "--markdown": wantsMarkdown = true
            default:
                guard let value = rest.popFirst() else { throw BenchmarkError("\(name) is unknown or needs a value") }
                try set(name, value)
            }
        }
    }

    private mutating func set(_ name: String, _ value: String) throws {
        switch name {
        case "--case":
            guard Self.names.contains(value) else { throw BenchmarkError("unknown case \(value)") }
            cases.append(value)
        case "--rounds":
            guard let number = Int(value), number > 0 else { throw BenchmarkError("--rounds must be a number") }
            rounds = number
        case "--scale":
            guard let number = Double(value), number > 0 else { throw BenchmarkError("--scale must be a number") }
            scale = number
        case "--server":
            guard ["nginx", "loopback"].contains(value) else { throw BenchmarkError("--server: nginx or loopback") }
            usesNginx = value == "nginx"
        case "--output": output = value == "none" ? nil : value
        default: throw BenchmarkError("unknown option \(name)")
        }
    }

    /// JSON without a network.
    static let json = "json"

    static var names: [String] { Case.every.map(\.name) + SpecialCase.allCases.map(\.rawValue) + [json] }

    func includes(_ name: String) -> Bool {
        cases.isEmpty || cases.contains(name)
    }
}

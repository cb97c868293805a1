internal import FerryMeasurement
internal import FoundationEssentials

/// The report of an earlier run, which conditions compare with.
enum BenchBaseline {
    private struct Version: Decodable {
        var version: Int
    }

    static func report(at path: String) throws(InputError) -> BenchReport {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw InputError("\(path): cannot be read") }
        let decoder = JSONDecoder()
        // First, as the members of another version may be others, or mean something else.
        if let version = try? decoder.decode(Version.self, from: data).version, version != BenchReport.version {
            throw InputError("\(path): is of version \(version), and this ferry compares with \(BenchReport.version)")
        }
        do {
            return try decoder.decode(BenchReport.self, from: data)
        } catch {
            throw InputError("\(path): is not what ferry bench --json writes")
        }
    }

    /// That it is of another load, and in what; `nil` when it is of the same. The server may be another one, or the
    /// same on another port.
    static func warning(_ report: BenchReport, _ baseline: BenchReport) -> String? {
        var differences: [String] = []
        func compare(_ own: String, _ other: String) {
            if own != other { differences.append("\(other), not \(own)") }
        }
        compare(report.method, baseline.method)
        compare(path(report.url), path(baseline.url))
        compare(load(report.model), load(baseline.model))
        return differences.isEmpty ? nil : "the baseline is of another load: \(differences.joined(separator: "; "))"
    }

    private static func load(_ model: BenchReport.Model) -> String {
        if let concurrency = model.concurrency { return "\(grouped(UInt64(max(0, concurrency)))) at once" }
        return model.rate.map { "\($0) a second" } ?? model.kind
    }

    /// Without the server, and without the query, whose values reports leave out.
    private static func path(_ url: String) -> String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = rest.drop { $0 != "/" && $0 != "?" && $0 != "#" }.prefix { $0 != "?" && $0 != "#" }
        return path.isEmpty ? "/" : String(path)
    }
}

internal import FerryMeasurement
internal import FoundationEssentials

/// The figures at the end.
struct BenchSummary: Sendable {
    static let percents: [(name: String, percent: Double)] = [
        ("p50", 50), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99), ("p99.9", 99.9),
    ]

    private let totals: BenchTotals
    private let seconds: Double
    private let usage: ProcessUsage
    private let connections: UInt64
    private let peakMemory = ProcessUsage.peakMemory

    init(_ totals: BenchTotals, nanoseconds: UInt64, usage: ProcessUsage, connections: UInt64) {
        self.totals = totals
        seconds = Double(nanoseconds) / 1e9
        self.usage = usage
        self.connections = connections
    }

    var requests: UInt64 { totals.ok + totals.failed }
    var failed: UInt64 { totals.failed }
    /// Every answer that failed had come whole.
    var failedByValidation: Bool { totals.errors.keys.allSatisfy { ["invalidJSON", "schemaMismatch"].contains($0) } }
    var wrongBodies: UInt64 { totals.wrongBodies }
    private var rate: Double { seconds > 0 ? Double(requests) / seconds : 0 }
    private var user: Double { usage.user / Double(max(1, requests)) }
    private var system: Double { usage.system / Double(max(1, requests)) }
}

extension BenchSummary: Encodable {
    private enum Key: String, CodingKey {
        case requests, ok, failed, errors, seconds, rps, connections, bytes
        case latency = "latency_us"
        case phases = "phases_us"
        case cpu = "cpu_us_per_request"
        case memory = "max_rss_kb"
        case wrong = "wrong_bytes"
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(requests, forKey: .requests)
        try object.encode(totals.ok, forKey: .ok)
        try object.encode(failed, forKey: .failed)
        try object.encode(totals.errors, forKey: .errors)
        try object.encode(rounded(seconds, 6), forKey: .seconds)
        try object.encode(rounded(rate, 1), forKey: .rps)
        try object.encode(latencies, forKey: .latency)
        try object.encode(
            Dictionary(uniqueKeysWithValues: totals.phases.means.map { ($0.name, rounded($0.microseconds, 1)) }),
            forKey: .phases)
        try object.encode(["user": rounded(user, 2), "sys": rounded(system, 2)], forKey: .cpu)
        try object.encode(peakMemory, forKey: .memory)
        try object.encode(connections, forKey: .connections)
        try object.encode(totals.bytes, forKey: .bytes)
        try object.encode(wrongBodies, forKey: .wrong)
    }

    private var latencies: [String: Double] {
        var latencies = ["max": rounded(Double(totals.latencies.maximum) / 1000, 1)]
        for (name, percent) in Self.percents {
            latencies[name] = rounded(Double(totals.latencies.percentile(percent)) / 1000, 1)
        }
        return latencies
    }

    private func rounded(_ value: Double, _ digits: Int) -> Double {
        Double(fixed(value, digits)) ?? 0
    }

    /// One line, fields in alphabetical order.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { preconditionFailure("a summary is always JSON") }
        return String(decoding: data, as: UTF8.self)
    }
}

extension BenchSummary {
    /// For people.
    var table: String {
        var lines = [
            (
                "requests",
                "\(grouped(requests)) in \(fixed(seconds, 2)) s, \(grouped(totals.ok)) ok, \(grouped(failed)) failed"
            ),
            ("rate", Console.bold("\(grouped(UInt64(rate))) requests per second")),
            ("bytes", "\(grouped(totals.bytes)) in bodies, \(grouped(wrongBodies)) bodies unlike the first"),
        ]
        let latencies = Self.percents.map { name, percent in
            "\(name) \(durationText(nanoseconds: totals.latencies.percentile(percent)))"
        }
        lines.append(("latency", latencies.joined(separator: "   ")))
        lines.append(("", "max \(durationText(nanoseconds: totals.latencies.maximum))"))
        let phases = totals.phases.means.filter { $0.microseconds > 0 }.map {
            "\($0.name) \(durationText(nanoseconds: UInt64($0.microseconds * 1000)))"
        }
        lines.append(("phases", phases.joined(separator: "   ") + "   (means)"))
        lines.append(("CPU", "\(fixed(user, 1)) µs user + \(fixed(system, 1)) µs system a request"))
        lines.append(("memory", "\(fixed(Double(peakMemory) / 1024, 1)) MB at the peak"))
        lines.append(("connections", "\(grouped(connections)) opened"))
        for (code, count) in totals.errors.sorted(by: { $0.key < $1.key }) {
            lines.append(("error", "\(code) \(grouped(count))"))
        }
        return lines.map { name, text in
            "  " + name + String(repeating: " ", count: max(1, 13 - name.count)) + text + "\n"
        }.joined()
    }
}

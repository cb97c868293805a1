internal import FerryMeasurement
internal import Foundation

/// `FerryBenchmarks soak`: everything at once with faults on, for minutes, and what remains afterwards. Ferry and
/// URLSession run in a process of their own, at the same time, each with a server of its own.
struct SoakCommand {
    private var seconds = 300.0
    private var folder: String? = "Benchmarks/Results"
    private var hasRival = true

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            if name == "--alone" {
                hasRival = false
                continue
            }
            guard let value = rest.popFirst() else { throw BenchmarkError("soak: \(name) is unknown or needs a value") }
            switch name {
            case "--time":
                guard let time = Self.seconds(value) else { throw BenchmarkError("soak: --time takes 90s, 5m or 1h") }
                seconds = time
            case "--output": folder = value == "none" ? nil : value
            default: throw BenchmarkError("soak: unknown option \(name)")
            }
        }
    }

    /// `90s`, `5m`, `1h`.
    private static func seconds(_ text: String) -> Double? {
        guard let unit = text.last, let number = Double(text.dropLast()), number > 0 else { return nil }
        return ["s": 1.0, "m": 60, "h": 3600][String(unit)].map { $0 * number }
    }

    func run() throws {
        let date = Date()
        try OutputFolder.make(folder)
        let workers = hasRival ? ["soak-ferry", "soak-urlSession"] : ["soak-ferry"]
        let started = try workers.map { try Worker(name: $0, seconds: seconds) }
        let reports = try started.map { try $0.finish() }
        for report in reports { print(Self.text(report)) }
        if let folder { try write(reports, date, to: folder) }
        guard let own = reports.first, SoakVerdict(own).holds else { throw BenchmarkError("the soak did not hold") }
    }

    /// A client's process and its server's.
    private struct Worker {
        let server: ChildProcess
        let client: ChildProcess

        init(name: String, seconds: Double) throws {
            server = try ChildProcess([ownExecutable, "worker", "soak-server"])
            guard let url = server.readLine(), url.hasPrefix("http") else {
                throw BenchmarkError("the server did not start")
            }
            client = try ChildProcess(
                [ownExecutable, "worker", name, url, "\(seconds)"], environment: ["GLIBC_TUNABLES": Self.plainAllocator]
            )
        }

        /// The C library's allocator keeps freed memory for each thread, and fills these stores for hours; a leak of a
        /// megabyte would not be noticed beside them.
        private static let plainAllocator = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=2"

        func finish() throws -> SoakReport {
            defer { server.stop() }
            let end = client.finish()
            guard end.code == 0 else { throw BenchmarkError("a soak ended with \(end.code)") }
            return try JSONDecoder().decode(SoakReport.self, from: Data(end.output.utf8))
        }
    }

    private static func text(_ report: SoakReport) -> String {
        var lines = ["\(report.client): \(report.ended) runs in \(report.tallies.count) kinds"]
        for point in SoakVerdict(report).points {
            lines.append("  \(point.holds ? "ok    " : "FAILED") \(point.name): \(point.figure)")
        }
        for (name, tally) in report.tallies.sorted(by: { $0.key < $1.key }) where !tally.wrong.isEmpty {
            lines.append("  \(name): \(tally.ended - tally.right) of \(tally.ended) went wrong, as")
            lines += tally.wrong.map { "    \($0)" }
        }
        return lines.joined(separator: "\n")
    }

    private func write(_ reports: [SoakReport], _ date: Date, to folder: String) throws {
        let name = date.formatted(.iso8601).replacingOccurrences(of: ":", with: "-") + "-soak"
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        try encoder.encode(reports).write(to: URL(fileURLWithPath: "\(folder)/\(name).json"))
        let curves: [(String, String, (SoakSample) -> Double)] = [
            ("memory", "MB", { Double($0.memory) / 1024 }), ("allocated", "MB", { Double($0.allocated) / 1024 }),
            ("descriptors", "", { Double($0.descriptors) }),
            ("threads", "", { Double($0.threads) }),
        ]
        for (what, unit, figure) in curves {
            let plot = LinePlot(
                title: "Soak: \(what)", xLabel: "seconds", yLabel: unit.isEmpty ? what : "\(what), \(unit)",
                lines: reports.map { report in
                    .init(name: report.client, points: report.samples.map { ($0.seconds, figure($0)) })
                })
            try Data(plot.svg.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)-\(what).svg"))
        }
        print("written to \(folder)/\(name).json and its plots")
    }
}

internal import FerryMeasurement
internal import Foundation

// Load generators: `ferry bench`, and those it is compared with.

extension ProgramRivals {
    static func findFerry() -> String? {
        let beside = URL(fileURLWithPath: ownExecutable).deletingLastPathComponent().appending(path: "ferry").path
        return FileManager.default.isExecutableFile(atPath: beside) ? beside : findProgram("ferry")
    }

    // MARK: ferry bench

    /// The parts of its report that are used.
    private struct BenchObject: Decodable {
        struct Generator: Decodable {
            var busiestThread: Double
        }

        var ok: UInt64
        var failed: UInt64
        var wrongBytes: UInt64
        var seconds: Double
        var latencyUs: [String: Double]
        var connections: UInt64
        var maxRssKb: Int
        var generator: Generator
        var warnings: [String]
    }

    static func measureBench(_ program: String, _ load: Load) throws -> Measurement {
        var line = [program, "bench", load.url, "--json"]
        if let rate = load.rate {
            line += ["-r", "\(rate)", "-z", "\(load.seconds)"]
        } else {
            // As long as wrk, because its start takes as much CPU time as a thousand requests.
            line += ["-c", "\(load.concurrency)", "-z", "\(seconds(load))"]
        }
        if load.isSecure { line.append("-k") }
        let end = try ChildProcess(line).finish()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard end.code == 0, let object = try? decoder.decode(BenchObject.self, from: Data(end.output.utf8))
        else {
            throw BenchmarkError("ferry bench ended with \(end.code): \(end.output)")
        }
        var measurement = Measurement()
        measurement.ok = object.ok - min(object.ok, object.wrongBytes)
        measurement.wrong = object.wrongBytes
        measurement.failed = object.failed
        measurement.seconds = object.seconds
        measurement.userTime = end.usage.user
        measurement.systemTime = end.usage.system
        measurement.p50 = object.latencyUs["p50"] ?? 0
        measurement.p90 = object.latencyUs["p90"] ?? 0
        measurement.p99 = object.latencyUs["p99"] ?? 0
        measurement.maximum = object.latencyUs["max"] ?? 0
        measurement.peakMemory = object.maxRssKb
        measurement.connections = object.connections
        let isLimit = object.warnings.contains { $0.hasPrefix("the generator is the limit") }
        measurement.extra = ["busiest_thread": object.generator.busiestThread, "is_the_limit": isLimit ? 1 : 0]
        return measurement
    }

    // MARK: h2load

    /// In bursts: each of its connections sends its share of the rate by a timer of its own.
    static func measureH2load(_ program: String, _ load: Load) throws -> Measurement {
        let rate = load.rate ?? 1000
        let line = [
            program, "--h1", "-t1", "-c\(load.concurrency)", "--rps=\(Double(rate) / Double(load.concurrency))",
            "-D\(load.seconds)", load.url,
        ]
        let end = try ChildProcess(line).finish()
        guard end.code == 0, let report = H2loadReport(end.output) else {
            throw BenchmarkError("h2load ended with \(end.code): \(end.output)")
        }
        var measurement = report.measurement
        measurement.seconds = Double(load.seconds)
        measurement.userTime = end.usage.user
        measurement.systemTime = end.usage.system
        return measurement
    }

    // MARK: reqwest

    /// From Debian's packages alone; `nil` if they or cargo are missing.
    static func buildReqwest() throws -> String? {
        let registry = "/usr/share/cargo/registry"
        let manager = FileManager.default
        let crates = (try? manager.contentsOfDirectory(atPath: registry)) ?? []
        guard let cargo = findProgram("cargo"), crates.contains(where: { $0.hasPrefix("reqwest-") }) else { return nil }
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "RustClient").path
        let folder = URL(fileURLWithPath: ownExecutable).deletingLastPathComponent().appending(path: "RustClient").path
        try? manager.removeItem(atPath: folder + "/source")
        try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try manager.copyItem(atPath: sources, toPath: folder + "/source")
        let built = try ChildProcess([
            cargo, "build", "--quiet", "--release", "--offline", "--manifest-path", folder + "/source/Cargo.toml",
            "--target-dir", folder + "/target", "--config", "source.crates-io.replace-with=\"debian\"", "--config",
            "source.debian.directory=\"\(registry)\"",
        ]).finish()
        return built.code == 0 ? folder + "/target/release/client" : nil
    }
}

/// The output of h2load.
struct H2loadReport {
    let measurement: Measurement

    /// `nil` if it is different.
    init?(_ text: String) {
        var measurement = Measurement()
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "," }).map(String.init)
            if line.hasPrefix("requests:") {
                func count(_ name: String) -> UInt64 {
                    words.firstIndex(of: name).flatMap { $0 > 0 ? UInt64(words[$0 - 1]) : nil } ?? 0
                }
                (measurement.ok, measurement.failed) = (count("succeeded"), count("failed"))
            } else if line.hasPrefix("time for request:"), words.count >= 6 {
                measurement.maximum = WrkReport.microseconds(words[4])
            }
        }
        guard measurement.ok > 0 else { return nil }
        self.measurement = measurement
    }
}

internal import FerryMeasurement
internal import Foundation

/// A measurement in a process that does nothing else.
enum WorkerProcess {
    static func arguments(_ worker: String, _ load: Load) -> [String] {
        [
            ownExecutable, "worker", worker, load.url, "\(load.total)", "\(load.concurrency)", "\(load.length)",
            "\(load.connections)",
        ]
    }

    static func measure(
        _ worker: String, _ load: Load, environment: [String: String] = [:]
    ) throws -> Measurement {
        let end = try ChildProcess(arguments(worker, load), environment: environment).finish()
        guard end.code == 0 else { throw BenchmarkError("worker \(worker) ended with \(end.code)") }
        return try JSONDecoder().decode(Measurement.self, from: Data(end.output.utf8))
    }
}

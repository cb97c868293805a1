internal import CCoreDriver
internal import Ferry

/// The core, driven from C: no Swift between two requests.
enum CoreRival {
    static func run(_ load: Load) throws -> Measurement {
        var latencies = [UInt64](repeating: 0, count: load.total)
        var report = ccore_report()
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let result = load.url.withCString { url in
            latencies.withUnsafeMutableBufferPointer { latencies in
                guard let room = latencies.baseAddress else { return Int32(0) }
                var request = ccore_load(
                    url: url, total: UInt64(load.total), concurrency: UInt32(load.concurrency),
                    expected_length: UInt64(load.length), max_transfers: UInt32(max(1024, load.connections)),
                    max_per_host: UInt32(load.connections), engine: TransferEngine.standard == .automatic ? 1 : 2,
                    insecure: load.isSecure ? 1 : 0, latencies: room)
                return ccore_run(&request, &report)
            }
        }
        stopwatch.finish(&measurement)
        guard result == 0 else { throw BenchmarkError("the core refused: code \(result)") }
        measurement.seconds = report.seconds
        measurement.ok = report.ok
        measurement.wrong = report.wrong
        measurement.failed = report.failed
        measurement.connections = report.connections
        measurement.longestTurn = report.longest_turn_us
        measurement.setLatencies(nanoseconds: latencies)
        return measurement
    }
}

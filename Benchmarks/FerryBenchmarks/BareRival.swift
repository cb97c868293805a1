internal import CBareClient

/// The cost of the requests for a client that was written for nothing else.
enum BareRival {
    static func run(_ load: Load) throws -> Measurement {
        var latencies = [UInt64](repeating: 0, count: load.total)
        var report = cbare_report()
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let result = load.url.withCString { url in
            latencies.withUnsafeMutableBufferPointer { latencies in
                var order = cbare_load(
                    url: url, total: UInt64(load.total), concurrency: UInt32(load.concurrency),
                    expected_length: UInt64(load.length), latencies: latencies.baseAddress)
                return cbare_run(&order, &report)
            }
        }
        stopwatch.finish(&measurement)
        guard result == 0 else { throw BenchmarkError("the bare client ended with \(result)") }
        measurement.seconds = report.seconds
        measurement.ok = report.ok
        measurement.wrong = report.wrong
        measurement.failed = report.failed
        measurement.connections = report.connections
        measurement.setLatencies(nanoseconds: latencies)
        return measurement
    }
}

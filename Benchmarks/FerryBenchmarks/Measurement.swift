internal import FerryMeasurement
internal import Foundation

/// The result of one worker process in one run, sent to the harness as one line of JSON.
struct Measurement: Codable, Sendable {
    /// Responses with status 200 and the expected length.
    var ok: UInt64 = 0
    /// Other responses.
    var wrong: UInt64 = 0
    var failed: UInt64 = 0
    var seconds = 0.0
    /// Microseconds of CPU from before the client was made until its last result, over all threads.
    var userTime = 0.0
    var systemTime = 0.0
    var p50 = 0.0
    var p90 = 0.0
    var p99 = 0.0
    var p999 = 0.0
    var maximum = 0.0
    /// Kilobytes: the largest resident size, and the part of it from before the client was made.
    var peakMemory = 0
    var baseMemory = 0
    var connections: UInt64?
    var longestTurn: UInt64?
    /// Figures of special cases.
    var extra: [String: Double] = [:]

    var total: UInt64 { ok + wrong + failed }
    var userPerRequest: Double { userTime / Double(max(1, total)) }
    var systemPerRequest: Double { systemTime / Double(max(1, total)) }
    var cpuPerRequest: Double { userPerRequest + systemPerRequest }
    var rate: Double { seconds > 0 ? Double(total) / seconds : 0 }

    /// Leaves out what a run used that did the same and ended when its connections were open. `extra` gets the CPU time
    /// of opening one of them. The latencies and the memory remain those of the whole run.
    mutating func leaveOut(_ opening: Measurement, opening connections: Int) throws {
        guard opening.ok < ok, opening.seconds < seconds else { throw BenchmarkError("opening took the whole run") }
        extra["us_to_open"] = (opening.userTime + opening.systemTime) / Double(max(1, connections))
        userTime -= opening.userTime
        systemTime -= opening.systemTime
        seconds -= opening.seconds
        (ok, wrong, failed) = (ok - opening.ok, wrong + opening.wrong, failed + opening.failed)
    }

    mutating func setLatencies(nanoseconds: [UInt64]) {
        var histogram = Histogram()
        for latency in nanoseconds { histogram.record(latency) }
        setLatencies(histogram)
    }

    /// Microseconds.
    mutating func setLatencies(_ histogram: Histogram) {
        p50 = Double(histogram.percentile(50)) / 1000
        p90 = Double(histogram.percentile(90)) / 1000
        p99 = Double(histogram.percentile(99)) / 1000
        p999 = Double(histogram.percentile(99.9)) / 1000
        maximum = Double(histogram.maximum) / 1000
    }
}

/// Measures the work of a worker: what was used between `init` and `finish`.
struct Stopwatch {
    private let usage = ProcessUsage.now
    private let memory = ProcessUsage.memory
    private let start = monotonicNanoseconds()

    func finish(_ measurement: inout Measurement) {
        let used = ProcessUsage.now - usage
        measurement.seconds = Double(monotonicNanoseconds() - start) / 1e9
        measurement.userTime = used.user
        measurement.systemTime = used.system
        measurement.baseMemory = memory
        measurement.peakMemory = ProcessUsage.peakMemory
    }
}

/// The output of Go's client: CPU totals in seconds, latencies in microseconds.
struct GoReport: Decodable {
    var userTime: Double
    var systemTime: Double
    var rate: Double
    var median: Double
    var percentile99: Double
    var peakMemory: Int
    /// Wrong or missing responses.
    var bad: Double

    private enum CodingKeys: String, CodingKey {
        case userTime = "cpu_user_s"
        case systemTime = "cpu_sys_s"
        case rate = "rps"
        case median = "p50_us"
        case percentile99 = "p99_us"
        case peakMemory = "maxrss_kb"
        case bad
    }

    func measurement(total: Int) -> Measurement {
        var measurement = Measurement()
        measurement.wrong = min(UInt64(max(0, bad)), UInt64(total))
        measurement.ok = UInt64(total) - measurement.wrong
        measurement.seconds = rate > 0 ? Double(total) / rate : 0
        measurement.userTime = userTime * 1e6
        measurement.systemTime = systemTime * 1e6
        measurement.p50 = median
        measurement.p99 = percentile99
        measurement.peakMemory = peakMemory
        return measurement
    }
}

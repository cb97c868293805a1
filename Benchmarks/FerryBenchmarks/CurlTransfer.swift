internal import FerryMeasurement
internal import Foundation

/// One large body transferred by the curl command, up or down.
enum CurlTransfer {
    /// Measured by curl's own clock, so that its start does not count. `counted` is the variable with the size, such as
    /// `size_download`.
    static func measure(_ url: String, size: Int, counted: String, _ options: [String]) throws -> Measurement {
        guard let program = findProgram("curl") else { throw BenchmarkError("curl is not installed") }
        let always = ["-q", "--silent", "--show-error", "--fail", "--noproxy", "*", "--http1.1"]
        let said = ["--write-out", "%{time_total} %{\(counted)}"]
        let end = try ChildProcess([program] + always + options + said + [url]).finish()
        guard end.code == 0, let seconds = Self.seconds(end.output, size: size) else {
            throw BenchmarkError("curl ended with \(end.code): \(end.output)")
        }
        var measurement = Measurement()
        measurement.ok = 1
        measurement.seconds = seconds
        measurement.userTime = end.usage.user
        measurement.systemTime = end.usage.system
        measurement.extra = figures(size, seconds, cpu: end.usage.user + end.usage.system)
        return measurement
    }

    /// `nil` if the output is different, or has another number of bytes.
    static func seconds(_ output: String, size: Int) -> Double? {
        let words = output.split(separator: " ")
        guard words.count == 2, Int(words[1]) == size else { return nil }
        return Double(words[0])
    }

    /// The figures of any client that are compared. CPU in microseconds.
    static func figures(_ size: Int, _ seconds: Double, cpu: Double) -> [String: Double] {
        ["mb_per_second": Double(size) / seconds / 1e6, "cpu_ms": cpu / 1000]
    }
}

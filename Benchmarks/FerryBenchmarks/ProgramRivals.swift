internal import FerryMeasurement
internal import Foundation

/// Clients that are separate programs, if installed: wrk, the limit; Go's net/http; curl's parallel mode. Their CPU
/// time is that of the whole process, including its start.
struct ProgramRivals {
    private let wrk = findProgram("wrk")
    private let curl = findProgram("curl")
    /// Go's client, built for this run; `nil` without Go.
    private let go: String?
    private let h2load = findProgram("h2load")
    /// `ferry` beside this program, or on the `PATH`.
    private let bench = Self.findFerry()
    /// Rust's client, built once and kept beside this program; `nil` if it cannot be built.
    private let reqwest: String?
    /// The rivals that are left out, and why.
    private(set) var missing: [String] = []

    init() throws {
        go = try Self.buildGo()
        reqwest = try Self.buildReqwest()
        if wrk == nil { missing.append("wrk is left out: not installed") }
        if go == nil { missing.append("Go net/http is left out: go is not installed") }
        if h2load == nil { missing.append("h2load is left out: nghttp2-client is not installed") }
        if bench == nil { missing.append("ferry bench is left out: ferry is not beside FerryBenchmarks") }
        if reqwest == nil { missing.append("reqwest is left out: it needs cargo and librust-reqwest-dev") }
    }

    func has(_ rival: Rival) -> Bool {
        switch rival {
        case .wrk: wrk != nil
        case .go: go != nil
        case .curlParallel: curl != nil
        case .bench: bench != nil
        case .h2load: h2load != nil
        case .reqwest: reqwest != nil
        default: true
        }
    }

    func remove() {
        if let go {
            try? FileManager.default.removeItem(atPath: URL(fileURLWithPath: go).deletingLastPathComponent().path)
        }
    }

    /// `nil` if the rival is none of these.
    func measure(_ rival: Rival, _ load: Load) throws -> Measurement? {
        switch rival {
        case .wrk: try wrk.map { try Self.measureWrk($0, load) }
        case .go: try go.map { try Self.measureGo($0, load) }
        case .curlParallel: try curl.map { try Self.measureCurl($0, load) }
        case .bench: try bench.map { try Self.measureBench($0, load) }
        case .h2load: try h2load.map { try Self.measureH2load($0, load) }
        case .reqwest: try reqwest.map { try Self.measureGo($0, load) }
        default: nil
        }
    }

    // MARK: wrk

    /// How long the load generators run, in seconds.
    static func seconds(_ load: Load) -> Int { max(2, min(10, load.total / 50_000)) }

    /// It only takes a time, not a number of requests.
    private static func measureWrk(_ program: String, _ load: Load) throws -> Measurement {
        let line = [program, "-t1", "-c\(load.concurrency)", "-d\(seconds(load))s", "--latency", load.url]
        let end = try ChildProcess(line).finish()
        guard end.code == 0, let report = WrkReport(end.output) else {
            throw BenchmarkError("wrk ended with \(end.code): \(end.output)")
        }
        var measurement = report.measurement
        measurement.userTime = end.usage.user
        measurement.systemTime = end.usage.system
        return measurement
    }

    // MARK: Go, and reqwest with the same output

    private static func buildGo() throws -> String? {
        guard let program = findProgram("go") else { return nil }
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "GoClient/main.go").path
        let folder = NSTemporaryDirectory() + "/ferry-go-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let built = try ChildProcess(
            [program, "build", "-o", folder + "/client", source],
            environment: ["GO111MODULE": "off", "GOCACHE": folder + "/cache"]
        ).finish()
        guard built.code == 0 else { throw BenchmarkError("go build ended with \(built.code)") }
        return folder + "/client"
    }

    private static func measureGo(_ program: String, _ load: Load) throws -> Measurement {
        let end = try ChildProcess(
            [program, load.url, "\(load.total)", "\(load.concurrency)"], environment: ["EXPECT_LEN": "\(load.length)"]
        ).finish()
        guard end.code == 0 else { throw BenchmarkError("Go's client ended with \(end.code)") }
        return try JSONDecoder().decode(GoReport.self, from: Data(end.output.utf8)).measurement(total: load.total)
    }

    // MARK: curl

    /// The maximum concurrency of curl.
    static let mostOfCurl = 300

    /// One process, with a line of output for each exchange. Its times begin when a transfer has its connection, and do
    /// not include how long it waited: they are left out.
    private static func measureCurl(_ program: String, _ load: Load) throws -> Measurement {
        let start = monotonicNanoseconds()
        let end = try ChildProcess([
            program, "-q", "--no-progress-meter", "--noproxy", "*", "--http1.1", "--parallel", "--parallel-immediate",
            "--parallel-max", "\(min(load.concurrency, mostOfCurl))", "--output", "/dev/null", "--write-out",
            "%{http_code} %{size_download}\\n", load.url + "?[1-\(load.total)]",
        ]).finish()
        var measurement = CurlLines.measurement(end.output, length: load.length)
        measurement.seconds = Double(monotonicNanoseconds() - start) / 1e9
        measurement.userTime = end.usage.user
        measurement.systemTime = end.usage.system
        guard measurement.total > 0 else { throw BenchmarkError("curl ended with \(end.code)") }
        return measurement
    }
}

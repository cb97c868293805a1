internal import Ferry
internal import FerryMeasurement
internal import FerryTesting
internal import Foundation
internal import Glibc

/// Downloads: a large file beside the curl command, the rest of one, and many small ones.
enum DownloadCase {
    static let size = 1_000_000_000
    static let small = 102_400
    private static let path = "/bytes/\(size)"
    private static let count = 1000

    /// One file of 1 GB into a file system in memory: no disk is measured, and the `fsync` that curl does not do costs
    /// nothing there. Memory is counted from when the agent exists and has not loaded anything: most of what a process
    /// takes for its first agent is code of libcurl and its TLS library.
    static func ferry(_ server: String) async throws -> Measurement {
        let folder = try Folder(inMemory: true)
        defer { folder.remove() }
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = NetworkAgent(configuration: NetworkConfiguration(userAgent: nil))
        let memory = ProcessUsage.memory
        let start = monotonicNanoseconds()
        let file = try await agent.download(Get(path: server + path), to: .file(folder.path + "/1g"))
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        stopwatch.finish(&measurement)
        if file.length == Int64(size) { measurement.ok = 1 } else { measurement.wrong = 1 }
        measurement.add(agent.statistics)
        measurement.extra = CurlTransfer.figures(size, seconds, cpu: measurement.userTime + measurement.systemTime)
        measurement.extra["memory_mb"] = Double(measurement.peakMemory - memory) / 1024
        await agent.shutdown(grace: .zero)
        return measurement
    }

    /// The same by the curl command.
    static func curl(_ server: String) throws -> Measurement {
        let folder = try Folder(inMemory: true)
        defer { folder.remove() }
        return try CurlTransfer.measure(
            server + path, size: size, counted: "size_download", ["--output", folder.path + "/1g"])
    }

    /// A file of 1 GB that breaks off at 900 MB and is resumed: the bytes that the server was asked for the second
    /// time.
    static func resume() async throws -> Measurement {
        let (cut, folder) = (900_000_000, try Folder(inMemory: true))
        defer { folder.remove() }
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(userAgent: nil))
        let request = Get(path: server.baseURL + "/bytes/\(size)?cut=\(cut)")
        let target = DownloadTarget.file(folder.path + "/1g")
        _ = try? await agent.download(request, to: target)
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let file = try await agent.download(request, to: target)
        stopwatch.finish(&measurement)
        if file.length == Int64(size) { measurement.ok = 1 } else { measurement.wrong = 1 }
        let ranges = server.requests.dropFirst().map { $0.headers["Range"] ?? "bytes=0-" }
        let first = ranges.compactMap { Int($0.dropFirst(6).prefix { $0 != "-" }) }.min() ?? 0
        measurement.extra = [
            "requests": Double(ranges.count), "asked_again_bytes": Double(max(cut - first, 0)),
            "received_mb": Double(file.metrics.bytesReceived) / 1e6,
        ]
        await agent.shutdown(grace: .zero)
        server.stop()
        return measurement
    }

    /// A thousand files written to disk, one after another and 32 at once.
    static func files(_ server: String) async throws -> Measurement {
        let folder = try Folder(inMemory: false)
        defer { folder.remove() }
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = NetworkAgent(configuration: NetworkConfiguration(userAgent: nil))
        var (rates, costs): ([Double], [Double]) = ([], [])
        for concurrency in [1, 32] {
            let usage = ProcessUsage.now
            let start = monotonicNanoseconds()
            let tickets = Tickets(count)
            await withTaskGroup(of: UInt64.self) { group in
                for sender in 0..<concurrency {
                    let names = "\(folder.path)/\(concurrency)-\(sender)-"
                    group.addTask { await load(server + "/bytes/\(small)", names, by: agent, tickets) }
                }
                for await ok in group { measurement.ok += ok }
            }
            rates.append(Double(count) * 1e9 / Double(monotonicNanoseconds() - start))
            let used = ProcessUsage.now - usage
            costs.append((used.user + used.system) / Double(count))
        }
        stopwatch.finish(&measurement)
        measurement.failed = UInt64(2 * count) - measurement.ok
        measurement.extra = [
            "one_per_second": rates[0], "many_per_second": rates[1], "ratio": rates[1] / rates[0],
            "one_cpu_us": costs[0], "many_cpu_us": costs[1],
        ]
        measurement.add(agent.statistics)
        await agent.shutdown(grace: .zero)
        return measurement
    }

    private static func load(
        _ url: String, _ names: String, by agent: NetworkAgent, _ tickets: Tickets
    ) async -> UInt64 {
        var (ok, number): (UInt64, Int) = (0, 0)
        while tickets.take() {
            number += 1
            let file = try? await agent.download(Get(path: url), to: .file(names + "\(number)"))
            if file?.length == Int64(small) { ok += 1 }
        }
        return ok
    }
}

/// A folder of its own.
private struct Folder {
    let path: String

    init(inMemory: Bool) throws {
        let root = inMemory && access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : NSTemporaryDirectory()
        path = root + "ferry-download-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

internal import Ferry
internal import FerryMeasurement
internal import Foundation
internal import Glibc

/// Uploads one file of 1 GB to a server that discards it: speed and memory, beside the curl command.
enum UploadCase {
    private static let size = 1_000_000_000

    /// Ferry, by `await`; memory is counted from when the agent exists, as for a download.
    static func ferry(_ server: String) async throws -> Measurement {
        let file = try SparseFile(size)
        defer { file.remove() }
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = NetworkAgent(configuration: NetworkConfiguration(userAgent: nil, acceptedEncodings: []))
        let memory = ProcessUsage.memory
        let start = monotonicNanoseconds()
        let reply = try await agent.send(HTTPRequest(.put, server + "/hello", body: .file(file.path)))
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        stopwatch.finish(&measurement)
        if reply.status == 200 { measurement.ok = 1 } else { measurement.wrong = 1 }
        measurement.add(agent.statistics)
        measurement.extra = CurlTransfer.figures(size, seconds, cpu: measurement.userTime + measurement.systemTime)
        measurement.extra["memory_mb"] = Double(measurement.peakMemory - memory) / 1024
        await agent.shutdown(grace: .zero)
        return measurement
    }

    /// The same by the curl command.
    static func curl(_ server: String) throws -> Measurement {
        let file = try SparseFile(size)
        defer { file.remove() }
        return try CurlTransfer.measure(
            server + "/hello", size: size, counted: "size_upload",
            ["--header", "Expect:", "--upload-file", file.path, "--output", "/dev/null"])
    }
}

/// A sparse file, read once so that all rivals find it in the page cache.
private struct SparseFile {
    let path: String

    init(_ size: Int) throws {
        path = NSTemporaryDirectory() + "/ferry-upload-\(getpid())"
        let descriptor = open(path, O_CREAT | O_RDWR | O_TRUNC, 0o600)
        guard descriptor >= 0, ftruncate(descriptor, off_t(size)) == 0 else {
            throw BenchmarkError("\(path): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var space = [UInt8](repeating: 0, count: 65_536)
        while read(descriptor, &space, space.count) > 0 {}
    }

    func remove() { unlink(path) }
}

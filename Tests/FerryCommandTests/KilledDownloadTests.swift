import FaultTable
import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Injection
import Testing

@testable import FerryCommand

/// Rows R94 and R95: downloads whose process is killed, or whose disk is full. The process is `ferry download`.
@Suite(.timeLimit(.minutes(3)), .faultTable) struct KilledDownloadTests {
    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "ferry-killed-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    /// The bytes on disk, without holes: the file of a segmented download has its full length from the start.
    private func bytesOnDisk(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }

    private func digestOfFile(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { SHA256.hexadecimal(of: Array($0)) }
    }

    @Test(
        "R95: killed at random points and resumed each time, a download ends whole", arguments: [1, 4])
    func killed(segments: Int) async throws {
        let (kills, size) = (LongTests.count(25, share: 8), 26_000_000)
        let digest = SHA256.hexadecimal(of: LoopbackServer.pattern(0..<size))
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let (target, url) = (folder + "/f", server.baseURL + "/bytes/\(size)")
                let command = [
                    try FerryProgram.path, "download", url, "-o", target, "--json", "--segments", "\(segments)",
                ]
                var random = SystemRandomNumberGenerator()
                for kill in 1...kills {
                    let process = try ChildProcess(command + ["--limit-rate", "30M"])
                    // About a twenty-fifth more than there was, so that all of them have something to do.
                    let goal = bytesOnDisk(target + ".ferry-part") + Int.random(in: 1...(size / kills), using: &random)
                    while bytesOnDisk(target + ".ferry-part") < goal && !FileManager.default.fileExists(atPath: target)
                    {
                        usleep(500)
                    }
                    process.signal(SIGKILL)
                    let end = process.finish()
                    // A process that has finished, or nearly, leaves the whole file, and the next one starts again.
                    if let file = FileManager.default.contents(atPath: target) {
                        #expect(SHA256.hexadecimal(of: Array(file)) == digest, "kill \(kill): \(end.code)")
                        try FileManager.default.removeItem(atPath: target)
                    }
                    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                    #expect(names.allSatisfy { $0.hasPrefix("f.ferry-") }, "\(names)")
                }
                let requests = server.requestCount
                let end = try ChildProcess(command + ["--sha256", digest]).finish()
                #expect(end.code == 0, "\(end.output)")
                #expect(end.output.contains("\"ok\":true") && server.requestCount > requests)
                #expect(digestOfFile(target) == digest)
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["f"])
                // Nearly all bytes were transferred only once: those requested again are the cost of a kill.
                let resumed = server.requests.filter { $0.headers["Range"] != nil }.count
                #expect(resumed >= kills / 2, "\(resumed) of \(server.requestCount)")
            }
        }
    }

    @Test("R95: for a small file a kill leaves a part at most, and the next run starts again")
    func killedInASmallFile() async throws {
        let (kills, size) = (10, 200_000)
        let digest = SHA256.hexadecimal(of: LoopbackServer.pattern(0..<size))
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let target = folder + "/f"
                let command = [
                    try FerryProgram.path, "download", server.baseURL + "/bytes/\(size)", "-o", target, "--json",
                ]
                for kill in 1...kills {
                    let process = try ChildProcess(command + ["--limit-rate", "100K"])
                    while bytesOnDisk(target + ".ferry-part") < kill * size / (2 * kills) { usleep(500) }
                    process.signal(SIGKILL)
                    _ = process.finish()
                    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                    #expect(names == ["f.ferry-part"], "\(names)")
                }
                let end = try ChildProcess(command + ["--sha256", digest]).finish()
                #expect(end.code == 0, "\(end.output)")
                #expect(digestOfFile(target) == digest)
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["f"])
                #expect(server.requests.allSatisfy { $0.headers["Range"] == nil })
            }
        }
    }

    @Test(
        "R95: killed while it starts again, it leaves nothing that could be taken for the file",
        .enabled(if: Injection.isPossible), arguments: ["ftruncate", "rename"], [1, 2])
    func killedWhereItBeginsAnew(function: String, call: Int) async throws {
        let size = 3_000_000
        let digest = SHA256.hexadecimal(of: LoopbackServer.pattern(0..<size))
        try await withFolder { folder in
            try await withLoopbackServer { server in
                let (target, path) = (folder + "/f", "/bytes/\(size)")
                let command = [
                    try FerryProgram.path, "download", server.baseURL + path + "?etag=%22v%22", "-o", target, "--json",
                ]
                // A run that broke off leaves a part in one piece.
                server.script(
                    path: path, uses: 1,
                    [
                        .send("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: \(size)\r\n\r\n"),
                        .pattern(bytes: 1_000_000), .close,
                    ])
                #expect(try ChildProcess(command + ["--retries", "0"]).finish().code == 3)
                #expect(FileManager.default.fileExists(atPath: target + ".ferry-meta"))
                // The next one discards that, because it downloads in segments, and is killed at the start.
                let injection = Injection.kill(atCall: call, of: function)
                let killed = try ChildProcess(
                    command + ["--restart", "--segments", "4"], environment: injection.environment
                ).finish()
                #expect(killed.code == -SIGKILL && !FileManager.default.fileExists(atPath: target), "\(killed.output)")
                let end = try ChildProcess(command).finish()
                #expect(end.code == 0, "\(end.output)")
                #expect(digestOfFile(target) == digest)
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["f"])
            }
        }
    }

    @Test("R94: a full disk is fileIO with ENOSPC and no other error", .enabled(if: mayMount))
    func fullDisk() async throws {
        try await withFolder { folder in
            try await withLoopbackServer { server in
                // 64 KB in a file system of its own, which only this process sees.
                let script = """
                    mount -t tmpfs -o size=64k tmpfs "$1" && "$0" download "$2" -o "$1/f" --json --retries 0
                    code=$?
                    ls "$1"
                    exit $code
                    """
                let began = ContinuousClock.now
                let process = try ChildProcess([
                    "unshare", "-m", "/bin/sh", "-c", script, try FerryProgram.path, folder,
                    server.baseURL + "/bytes/1000000",
                ])
                let end = process.finish()
                #expect(end.code == 3 && end.output.contains("\"code\":\"fileIO\""), "\(end.output)")
                let names = end.output.split(separator: "\n").dropFirst()
                #expect(names.allSatisfy { $0.hasPrefix("f.ferry-") }, "no file, and the part may stay: \(names)")
                FaultNote.add(form: "download", outcome: "`fileIO` in body", took: .now - began)
            }
        }
    }
}

/// Whether this machine allows a file system of our own.
private let mayMount: Bool = {
    let process = try? ChildProcess(["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"])
    return process?.finish().code == 0
}()

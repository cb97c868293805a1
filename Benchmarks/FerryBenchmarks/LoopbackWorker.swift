internal import FerryMeasurement
internal import FerryTesting
internal import Foundation
internal import Glibc

/// The loopback server as a process, which ends with its input.
enum LoopbackWorker {
    static func run() throws {
        var options = LoopbackServer.Options()
        options.recordedRequests = 0
        let server = try LoopbackServer(options)
        let sample = JSONSample.small.text
        server.handle("GET", JSONSample.path) { _ in LoopbackResponse(body: sample) }
        // As a collector of traces and metrics.
        server.handle("POST", "/v1/*") { _ in LoopbackResponse(json: "{}") }
        FileHandle.standardOutput.write(Data((server.baseURL + "\n").utf8))
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) > 0 {}
        server.stop()
    }
}

internal import FerryTesting
internal import Foundation
internal import Glibc

/// The loopback server as a process, with faults as often as requested; it ends with its input.
enum SoakServer {
    static func run() throws {
        var options = LoopbackServer.Options()
        options.recordedRequests = 0
        let server = try LoopbackServer(options)
        for (path, script) in faults { server.script(path: path, script) }
        FileHandle.standardOutput.write(Data((server.baseURL + "\n").utf8))
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) > 0 {}
        server.stop()
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"

    private static let faults: [(String, LoopbackScript)] = [
        ("/fault/cut", [.expectHead, .send(ok + "Content-Length: 100\r\n\r\nabc"), .close]),
        ("/fault/reset", [.expectHead, .send(ok + "Content-Length: 100\r\n\r\nabc"), .reset]),
        ("/fault/chunk", [.expectHead, .send(ok + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n"), .keepOpen]),
        (
            "/fault/length",
            [.expectHead, .send(ok + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"), .keepOpen]
        ),
        ("/fault/header", [.expectHead, .send(ok + "X: a\0b\r\nContent-Length: 0\r\n\r\n"), .keepOpen]),
        ("/fault/silent", [.expectHead, .keepOpen]),
        ("/fault/gone", [.expectHead, .close]),
        ("/fault/excess", [.expectHead, .send(ok + "Content-Length: 4\r\n\r\ngood" + poison), .serve]),
    ]
}

import Ferry
import FerryTesting
import FoundationEssentials

@testable import FerryTestSupport

/// The target of a run of a race, and how it may end if nothing ends it.
struct RaceTarget: Sendable {
    let path: String
    /// The body of a success; `nil` if there is none. Not `Data`: a constant one looks like a leak to a sanitizer.
    var body: [UInt8]?
    var codes: [RequestError.Code] = []
    var method = HTTPMethod.get

    /// The bytes of `/bytes/N` and similar routes.
    private static let pattern = LoopbackServer.pattern(0..<300_000)

    private static func bytes(_ count: Int, at path: String) -> RaceTarget {
        RaceTarget(path: path, body: Array(pattern.prefix(count)))
    }

    private static let hello = Array("Hello, ferry".utf8)

    /// Fast ones are listed more than once.
    static let all: [RaceTarget] = [
        RaceTarget(path: "/hello", body: hello), RaceTarget(path: "/hello", body: hello),
        bytes(0, at: "/bytes/0"), bytes(700, at: "/bytes/700"), bytes(40_000, at: "/bytes/40000"), large,
        bytes(5000, at: "/chunked/5000?chunk=300"), bytes(20_000, at: "/gzip/20000"),
        bytes(3000, at: "/until-close/3000"),
        RaceTarget(path: "/delay/2", body: hello), RaceTarget(path: "/redirect/2", body: hello),
        RaceTarget(path: "/close", body: hello), RaceTarget(path: "/excess", body: Array("good".utf8)),
        RaceTarget(path: "/status/404", codes: [.invalidStatusCode(404)]),
        RaceTarget(path: "/busy", body: hello, codes: [.invalidStatusCode(503)]),
        RaceTarget(path: "/gone", codes: [.connectionClosed]),
        RaceTarget(path: "/reset", codes: [.connectionReset, .connectionClosed]),
        RaceTarget(path: "/cut", codes: [.incompleteBody]),
        RaceTarget(path: "/held", codes: [.timeout]),
        RaceTarget(path: "http://h/\u{1}", codes: [.invalidURL]),
        // A request that a closing kept connection took along must not be sent twice.
        RaceTarget(
            path: "/echo/body", body: Array(pattern.prefix(9000)), codes: [.connectionClosed, .connectionReset],
            method: .post),
    ]

    /// The one file of all downloads that have the same target.
    static let large = bytes(300_000, at: "/bytes/300000")
    /// Requested so often that most are hits of the cache.
    static let kept = bytes(700, at: "/bytes/700")

    static func install(on server: LoopbackServer) {
        let excess = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
        server.script(path: "/excess", [.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood" + excess), .serve])
        server.script(path: "/gone", [.close])
        server.script(path: "/reset", [.reset])
        server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close])
        server.script(path: "/held", [.keepOpen])
        server.handle("/busy") { _ in
            Bool.random() ? LoopbackResponse(status: 503) : LoopbackResponse(text: "Hello, ferry")
        }
    }

    /// What is wrong with a body; `nil` if it is right.
    func fault(_ bytes: Data) -> String? {
        guard let body else { return "an answer where there is none" }
        return bytes == Data(body) ? nil : "\(bytes.count) bytes that are not the \(body.count) expected"
    }

    func fault(_ response: Response) -> String? { response.withBytes { fault(Data($0)) } }

    /// What is wrong with a file under its final name; `nil` if it is whole.
    func fault(fileAt path: String) -> String? {
        guard let bytes = FileManager.default.contents(atPath: path) else { return "no file at \(path)" }
        return fault(bytes)
    }
}

import Ferry
import FerryTesting
import FoundationEssentials

/// What a run of a race asks for, and how it may end when nobody ends it.
struct RaceTarget: Sendable {
    let path: String
    /// Of a success; `nil` where there is none. No `Data`: what that holds as a constant looks like a leak to a
    /// sanitizer.
    var body: [UInt8]?
    var codes: [RequestError.Code] = []
    var method = HTTPMethod.get

    /// The bytes of `/bytes/N` and its like.
    private static let pattern = LoopbackServer.pattern(0..<300_000)

    private static func bytes(_ count: Int, at path: String) -> RaceTarget {
        RaceTarget(path: path, body: Array(pattern.prefix(count)))
    }

    private static let hello = Array("Hello, ferry".utf8)

    /// Quick ones stand here more than once.
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
        // What a kept connection takes with it must not be sent twice.
        RaceTarget(
            path: "/echo/body", body: Array(pattern.prefix(9000)), codes: [.connectionClosed, .connectionReset],
            method: .post),
    ]

    /// The one file of all downloads that have the same target.
    static let large = bytes(300_000, at: "/bytes/300000")
    /// Asked for so often that most are hits of the cache.
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

    /// What is wrong with a body; `nil` when it is the right one.
    func fault(_ bytes: Data) -> String? {
        guard let body else { return "an answer where there is none" }
        return bytes.elementsEqual(body) ? nil : "\(bytes.count) bytes that are not the \(body.count) expected"
    }

    func fault(_ response: Response) -> String? { response.withBytes { fault(Data($0)) } }

    /// What is wrong with a file under its final name; `nil` when it is whole.
    func fault(fileAt path: String) -> String? {
        guard let bytes = FileManager.default.contents(atPath: path) else { return "no file at \(path)" }
        return fault(bytes)
    }
}

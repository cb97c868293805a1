import Ferry
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// nghttp2's file server: HTTP/2 only, over TLS.
final class NGHTTPServer: Sendable {
    private let process: ServerProcess
    let port: Int

    /// `streams`: the maximum number at once on a connection.
    init(streams: Int = 100) throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { folder, ports in
            try Certificates.shared.copy([.valid], to: folder)
            try Nginx.writeContent(to: folder)
            let files = [folder.file("valid.key"), folder.file("valid.pem")]
            return [
                "nghttpd", "-m", String(streams), "-a", "127.0.0.1", "-d", folder.file("www"), "--echo-upload",
                String(ports[0]),
            ]
                + files
        }
        self.process = process
        port = ports[0]
    }

    func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }
}

/// A Python HTTP/2 server with faults that no correct server has; see `Servers/http2.py`.
final class FaultyHTTP2Server: Sendable {
    private let process: ServerProcess
    let port: Int
    private let scheme: String

    /// In plain text without TLS, for clients with prior knowledge.
    init(isSecure: Bool = true) throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { folder, ports in
            try Certificates.shared.copy([.valid], to: folder)
            let script = try String(contentsOfFile: ServerProcess.script("http2.py"), encoding: .utf8)
            try folder.write(script, to: "http2.py")
            try folder.write("", to: "record")
            let files = isSecure ? ["valid.pem", "valid.key"] : []
            return ["/usr/bin/python3", "http2.py", String(ports[0]), "record"] + files
        }
        self.process = process
        port = ports[0]
        scheme = isSecure ? "https" : "http"
    }

    private static let started = Result { try FaultyHTTP2Server() }

    /// Shared by all tests, which distinguish their requests by their paths.
    static var shared: FaultyHTTP2Server { get throws { try started.get() } }

    private static let startedPlain = Result { try FaultyHTTP2Server(isSecure: false) }

    /// The same in plain text.
    static var sharedPlain: FaultyHTTP2Server { get throws { try startedPlain.get() } }

    func url(_ path: String) -> String { "\(scheme)://127.0.0.1:\(port)\(path)" }

    /// The requests so far whose path contains `part`. A request is listed before its response is sent.
    func requests(_ part: String) throws -> [Exchange] {
        try lines { !$0.contains(#""kind": "#) }.filter { $0.path.contains(part) }
    }

    /// Those of them that have ended so far, in this order.
    func ends(_ part: String) throws -> [Exchange] {
        try lines { $0.contains(#""kind": "end""#) }.filter { $0.path.contains(part) }
    }

    /// What clients did against the rules after such a request, so far.
    func violations(_ part: String) throws -> [String] {
        try lines { $0.contains(#""kind": "violation""#) }.filter { (line: Violation) in line.path.contains(part) }
            .map(\.words)
    }

    private func lines<Line: Decodable>(_ isWanted: (Substring) -> Bool) throws -> [Line] {
        // What follows the last line feed is a line that is being written.
        try process.folder.read("record").split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .filter(isWanted).map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    }

    /// A request as received.
    struct Exchange: Decodable, Sendable {
        /// How a request ends: with the end of its stream, a reset, or the connection.
        enum End: String, Decodable {
            case ended, reset, closed
        }

        /// A number for each connection.
        var connection: Int
        var stream: Int
        var method: String
        var path: String
        var authority: String
        var length: Int
        /// Of the body.
        var sha256: String
        /// This and the rest only if the request has ended.
        var end: End?
        /// The code of a reset.
        var code: Int?
        var trailers: [String: String]?
        /// The bytes of the body that came before the 100 of `/live/continue`.
        var early: Int?
    }

    private struct Violation: Decodable {
        var path: String
        var words: String
    }
}

// MARK: Full duplex

/// How client and server come to use HTTP/2.
enum HTTP2Way: CaseIterable, Sendable {
    /// With TLS, by ALPN.
    case negotiated
    /// With TLS, by prior knowledge.
    case known
    /// Without TLS, by prior knowledge.
    case plain
}

/// The requests of one test to a server with faults.
struct LiveServer: Sendable {
    let server: FaultyHTTP2Server
    let mark = token()

    /// A request for a route that responds before the request has ended; see `http2.py`.
    func request(_ path: String = "echo") -> HTTPRequest<Response> {
        HTTPRequest(.post, server.url("/live/\(path)\(path.contains("?") ? "&" : "?")id=\(mark)"))
    }

    var requests: [FaultyHTTP2Server.Exchange] { get throws { try server.requests(mark) } }

    /// Waits until a request has arrived.
    func arrival() async throws {
        _ = try await eventually("a request") { try requests.first }
    }

    /// Waits until as many requests have ended, in whatever way.
    func ends(_ count: Int = 1) async throws -> [FaultyHTTP2Server.Exchange] {
        try await eventually("\(count) requests that have ended") {
            let ends = try server.ends(mark)
            return ends.count >= count ? ends : nil
        }
    }
}

/// Passes an agent and a server to `body`. In the end nothing is running, and the client has kept to the rules.
func withLive(
    _ way: HTTP2Way = .negotiated, _ change: (inout NetworkConfiguration) -> Void = { _ in },
    _ body: (NetworkAgent, LiveServer) async throws -> Void
) async throws {
    let live = try LiveServer(server: way == .plain ? FaultyHTTP2Server.sharedPlain : FaultyHTTP2Server.shared)
    var configuration = try NetworkConfiguration.trusting
    (configuration.engine, configuration.http2) = (.automatic, way == .negotiated ? .negotiated : .priorKnowledge)
    configuration.timeouts.idle = .seconds(20)
    change(&configuration)
    try await withAgent(configuration) { agent in
        try await body(agent, live)
        _ = try await eventually("the end of all runs") { agent.statistics.running == 0 ? true : nil }
    }
    let violations = try live.server.violations(live.mark)
    #expect(violations.isEmpty, "\(violations)")
}

extension NetworkAgent {
    /// What an echo sends back of a text.
    func echo(_ text: String, _ request: HTTPRequest<Response>) async throws -> String {
        try await exchange(request) { response, body in
            try await body.write(text)
            try body.finish()
            return String(decoding: try await response.body.collect(upTo: 1_000), as: UTF8.self)
        }
    }

    /// Sends a text to an echo, and expects it back.
    func expectEcho(_ text: String, _ request: HTTPRequest<Response>) async throws {
        let echoed = try await echo(text, request)
        #expect(echoed == text)
    }
}

extension ExchangeResponse {
    /// The next piece of its body.
    func next() async throws -> Data? {
        var pieces = try await body.makeAsyncIterator()
        return try await pieces.next()
    }
}

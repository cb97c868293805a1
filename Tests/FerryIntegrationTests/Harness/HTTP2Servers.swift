import FoundationEssentials

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

    func url(_ path: String) -> String { "\(scheme)://127.0.0.1:\(port)\(path)" }

    /// The requests so far whose path contains `part`. A request is listed before its response is sent.
    func requests(_ part: String) throws -> [Exchange] {
        try process.folder.read("record").split(separator: "\n")
            .map { try JSONDecoder().decode(Exchange.self, from: Data($0.utf8)) }
            .filter { $0.path.contains(part) }
    }

    /// A request as received.
    struct Exchange: Decodable, Sendable {
        /// A number for each connection.
        var connection: Int
        var stream: Int
        var method: String
        var path: String
        var authority: String
        var length: Int
        /// Of the body.
        var sha256: String
    }
}

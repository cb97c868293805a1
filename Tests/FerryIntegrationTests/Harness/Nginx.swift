import FoundationEssentials
import Glibc

@testable import FerryTestSupport

/// Debian's nginx with the content and the faults of the tests; see `Nginx+Configuration.swift`.
final class Nginx: Sendable {
    /// The sites, each on a port of its own.
    enum Site: Int, CaseIterable {
        case http
        /// The same as `http`: another origin.
        case other
        /// https, HTTP/1.1 only.
        case tls
        /// https, HTTP/2 by ALPN.
        case http2
        /// https that requires a client certificate.
        case mutual
        /// TLS 1.2 only.
        case tls12
        /// TLS 1.3 only.
        case tls13
        case expired
        case wrongName
        case untrusted

        var scheme: String { self == .http || self == .other ? "http" : "https" }
    }

    /// The options in which one nginx differs from the next.
    struct Options: Sendable {
        /// Also listens on ::1, on the same port.
        var listensOnIPv6 = false
        /// Where requests are passed on to.
        var upstream: Int
    }

    private let process: ServerProcess
    private let ports: [Int]

    init(_ options: Options) throws {
        (process, ports) = try ServerProcess.start(ports: Site.allCases.count, ending: .terminate) { folder, ports in
            try Certificates.shared.copy([.valid, .expired, .wrongName, .untrusted], to: folder)
            try Self.writeContent(to: folder)
            try folder.write(Self.configuration(options, ports: ports, folder: folder.path), to: "nginx.conf")
            try folder.write(Self.commonLocations(options, ports: ports), to: "common.conf")
            return ["nginx", "-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
        }
    }

    private static let started = Result { try Nginx(Options(upstream: Upstream.shared.port)) }

    /// Shared by all tests, which distinguish their requests by their targets.
    static var shared: Nginx { get throws { try started.get() } }

    var pid: Int32 { process.pid }

    func port(_ site: Site) -> Int { ports[site.rawValue] }

    /// The URL of a site; with its address, unless a name is given.
    func url(_ path: String, _ site: Site = .http, host: String = "127.0.0.1") -> String {
        "\(site.scheme)://\(host):\(port(site))\(path)"
    }

    /// The path of the Unix socket that `http` and `tls` listen on, too.
    func socket(_ site: Site = .http) -> String { "\(process.folder.path)/\(site).sock" }

    /// Restarts the workers gracefully (SIGHUP).
    func reload() { process.signal(SIGHUP) }

    /// Bytes that differ from offset to offset, so that a missing or doubled piece is noticed.
    static func pattern(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
            // The pattern repeats itself. A debug build would compute it as slowly as nginx sends it.
            for index in 0..<min(count, 1 << 16) { bytes[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
            filled = min(count, 1 << 16)
            while filled < count {
                let piece = min(filled, count - filled)
                _ = bytes[filled...].update(fromContentsOf: bytes[..<piece])
                filled += piece
            }
        }
    }

    /// The requests whose target contains `part`. nginx writes a line after it has sent the response: waits for `count`
    /// of them.
    func log(_ part: String, count: Int) async throws -> [LogLine] {
        try await eventually("\(count) lines in nginx's log with \(part)") {
            // What follows the last line feed is a line that is being written.
            let text = process.folder.read("access.log")
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .filter { $0.contains(part) }
            guard lines.count >= count else { return nil }
            return try lines.map { try JSONDecoder().decode(LogLine.self, from: Data($0.utf8)) }
        }
    }

    /// A line of its access log.
    struct LogLine: Decodable, Sendable {
        /// A number for each connection.
        var connection: Int
        /// The number of the request on its connection.
        var request: Int
        var method: String
        var target: String
        /// 499 if the client closed before there was a response.
        var status: Int
        /// Bytes of the body.
        var sent: Int
        var version: String
        /// TLS's version; empty without.
        var tls: String
        /// The subject of the client's certificate; empty without.
        var client: String
        var authorization: String
        var cookie: String
    }
}

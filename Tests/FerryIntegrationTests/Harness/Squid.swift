import FerryMeasurement
import FoundationEssentials

@testable import FerryTestSupport

/// Debian's squid, without a cache: a proxy for http, and for everything else by CONNECT.
final class Squid: Sendable {
    /// The clients it serves, each on a port of its own, by one process.
    enum Door: Int, CaseIterable {
        case open
        /// Only the user `ferry` with the password `secret`.
        case locked
    }

    /// How the locked port asks for credentials.
    enum Scheme: String {
        case basic
        case digest
    }

    private let process: ServerProcess
    private let ports: [Int]

    /// `forbidding` is a port that it refuses to connect to.
    init(_ scheme: Scheme = .basic, forbidding forbidden: Int) throws {
        (process, ports) = try ServerProcess.start(ports: Door.allCases.count) { folder, ports in
            try folder.write(Self.passwords(scheme), to: "passwords")
            try folder.write(Self.configuration(scheme, ports, forbidden, folder), to: "squid.conf")
            return ["squid", "-N", "-n", "ferry\(ports[0])", "-f", folder.file("squid.conf")]
        }
    }

    private static let started = Result { try Squid(forbidding: Nginx.shared.port(.other)) }

    /// Shared by all tests: Basic credentials, and no access to nginx's site `other`.
    static var shared: Squid { get throws { try started.get() } }

    func port(_ door: Door) -> Int { ports[door.rawValue] }

    /// With credentials in it if some are given.
    func url(_ door: Door = .open, _ credentials: String? = nil) -> String {
        "http://\(credentials.map { $0 + "@" } ?? "")127.0.0.1:\(port(door))"
    }

    /// The requests it received whose target contains `part`, including refused ones. squid writes a line after its
    /// response: waits for `count` of them.
    func log(_ part: String, count: Int) async throws -> [LogLine] {
        try await eventually("\(count) lines in squid's log with \(part)") {
            // What follows the last line feed is a line that is being written.
            let text = process.folder.read("access.log")
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { LogLine($0) }
                .filter { $0.target.contains(part) }
            return lines.count < count ? nil : lines
        }
    }

    /// A line of its access log; `-` for a missing value.
    struct LogLine: Sendable {
        var method: String
        var target: String
        var status: Int
        /// The fields that the client sent to squid.
        var authorization: String
        var proxyAuthorization: String
        var cookie: String
        var userAgent: String

        init(_ line: Substring) {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            (method, target, status) = (fields[0], fields[1], Int(fields[2]) ?? 0)
            (authorization, proxyAuthorization, cookie, userAgent) = (fields[3], fields[4], fields[5], fields[6])
        }
    }

    /// squid's helpers read crypt(3) for Basic, and the hash of RFC 7616's A1 for Digest.
    private static func passwords(_ scheme: Scheme) throws -> String {
        switch scheme {
        case .basic:
            let end = try ChildProcess(["openssl", "passwd", "-apr1", "secret"]).finish()
            guard end.code == 0 else { throw ServerError("openssl passwd: \(end.output)") }
            return "ferry:" + end.output
        case .digest:
            return "ferry:squid:\(md5("ferry:squid:secret"))\n"
        }
    }

    private static func configuration(
        _ scheme: Scheme, _ ports: [Int], _ forbidden: Int, _ folder: ServerFolder
    ) -> String {
        let helper =
            switch scheme {
            case .basic: "/usr/lib/squid/basic_ncsa_auth \(folder.file("passwords"))"
            case .digest: "/usr/lib/squid/digest_file_auth -c \(folder.file("passwords"))"
            }
        let header = ["Authorization", "Proxy-Authorization", "Cookie", "User-Agent"]
            .map { "%{\($0)}>h" }.joined(separator: "\t")
        return """
            http_port 127.0.0.1:\(ports[0]) name=open
            http_port 127.0.0.1:\(ports[1]) name=locked
            auth_param \(scheme.rawValue) program \(helper)
            auth_param \(scheme.rawValue) children 1 startup=1
            auth_param \(scheme.rawValue) realm squid
            acl locked myportname locked
            acl known proxy_auth REQUIRED
            acl forbidden port \(forbidden)
            http_access deny forbidden
            http_access deny locked !known
            http_access allow all

            cache deny all
            logformat ferry %rm\t%ru\t%>Hs\t\(header)
            access_log stdio:\(folder.file("access.log")) logformat=ferry
            cache_log \(folder.file("cache.log"))
            buffered_logs off
            strip_query_terms off
            coredump_dir \(folder.path)
            netdb_filename none
            pid_filename none
            pinger_enable off
            # A container may allow millions, and squid has a table for all of them.
            max_filedescriptors 1024
            cache_mem 8 MB
            shutdown_lifetime 0 seconds
            visible_hostname squid.ferry
            dns_nameservers 127.0.0.1

            """
    }
}

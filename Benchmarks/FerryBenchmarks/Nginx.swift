internal import FerryMeasurement
internal import Foundation
internal import Glibc

/// Debian's nginx with one worker, started on a free port with a folder of its own.
final class Nginx {
    /// Its bodies, besides the files of the downloads.
    static let sizes = [2048, 16_384, 131_072, 1_048_576, 10_485_760]

    let url: String
    /// `nil` without the openssl command, which makes the certificate.
    let secureURL: String?
    private let process: ChildProcess
    private let folder: String

    /// `nil` if nginx is not installed.
    static func start() throws -> Nginx? {
        guard let program = findProgram("nginx") else { return nil }
        return try Nginx(program)
    }

    private init(_ program: String) throws {
        let folder = NSTemporaryDirectory() + "/ferry-nginx-\(getpid())"
        try FileManager.default.createDirectory(atPath: folder + "/html/bytes", withIntermediateDirectories: true)
        self.folder = folder
        try Data(JSONSample.small.text).write(to: URL(fileURLWithPath: folder + "/html" + JSONSample.path))
        let port = try Self.freePort()
        url = "http://127.0.0.1:\(port)"
        for size in Self.sizes + [65_536, DownloadCase.small] {
            try Data(repeating: 0x66, count: size).write(to: URL(fileURLWithPath: folder + "/html/bytes/\(size)"))
        }
        let large = open(folder + "/html/bytes/\(DownloadCase.size)", O_CREAT | O_RDWR | O_CLOEXEC, 0o644)
        defer { close(large) }
        guard large >= 0, ftruncate(large, off_t(DownloadCase.size)) == 0 else {
            throw BenchmarkError("\(folder): \(String(cString: strerror(errno)))")
        }
        let securePort = try Self.makeCertificate(in: folder) ? Self.freePort() : nil
        secureURL = securePort.map { "https://127.0.0.1:\($0)" }
        try Self.configuration(port: port, securePort: securePort, folder: folder)
            .write(toFile: folder + "/nginx.conf", atomically: true, encoding: .utf8)
        process = try ChildProcess([program, "-p", folder, "-c", "nginx.conf", "-e", "error.log"])
        try waitUntilListening(port: port, name: "nginx")
    }

    func stop() {
        process.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func makeCertificate(in folder: String) throws -> Bool {
        guard let program = findProgram("openssl") else { return false }
        let line = [
            program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2",
            "-subj", "/CN=127.0.0.1", "-keyout", folder + "/key.pem", "-out", folder + "/certificate.pem",
        ]
        return try ChildProcess(line).finish().code == 0
    }

    /// Keep-alive without limit and no log, so that only requests cost anything.
    private static func configuration(port: UInt16, securePort: UInt16?, folder: String) -> String {
        let secure = securePort.map { "listen 127.0.0.1:\($0) ssl backlog=16000;" } ?? ""
        let certificate = securePort.map { _ in
            "ssl_certificate \(folder)/certificate.pem; ssl_certificate_key \(folder)/key.pem;"
        }
        return """
            daemon off;
            worker_processes 1;
            worker_rlimit_nofile 20000;
            \(geteuid() == 0 ? "user root;" : "")
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log;
            events { worker_connections 16000; }
            http {
                access_log off;
                default_type application/octet-stream;
                sendfile on;
                tcp_nodelay on;
                keepalive_requests 1000000000;
                keepalive_timeout 600s;
                open_file_cache max=16 inactive=600s;
                client_body_temp_path \(folder)/body;
                proxy_temp_path \(folder)/proxy;
                fastcgi_temp_path \(folder)/fastcgi;
                uwsgi_temp_path \(folder)/uwsgi;
                scgi_temp_path \(folder)/scgi;
                server {
                    listen 127.0.0.1:\(port) backlog=16000;
                    \(secure)
                    \(certificate ?? "")
                    root \(folder)/html;
                    location = /hello { return 200 "Hello, ferry"; }
                }
            }

            """
    }

    static func freePort() throws -> UInt16 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = loopbackAddress(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let done = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(socket, pointer, size) == 0 && getsockname(socket, pointer, &size) == 0
            }
        }
        guard done else { throw BenchmarkError("no free port: \(String(cString: strerror(errno)))") }
        return UInt16(bigEndian: address.sin_port)
    }
}

/// Returns as soon as the port accepts connections; fails after ten seconds.
func waitUntilListening(port: UInt16, name: String) throws {
    for _ in 0..<1000 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = loopbackAddress(port: port)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if connected { return }
        usleep(10_000)
    }
    throw BenchmarkError("\(name) does not listen on port \(port)")
}

private func loopbackAddress(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

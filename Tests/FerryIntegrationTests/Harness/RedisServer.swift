import FerryMeasurement
import FerrySynchronization
import Glibc

/// Debian's redis-server at a Unix socket, whose path stays the same when the server is killed and starts again.
final class RedisServer: Sendable {
    let socket: String
    private let folder: ServerFolder
    private let options: [String]
    private let process = Mutex<ServerProcess?>(nil)

    init(options: [String] = []) throws {
        self.options = options
        folder = try ServerFolder()
        socket = folder.file("redis.sock")
        try folder.hand(to: .current)
        try start()
    }

    /// Debian's redis-server at a port of 127.0.0.1 with TLS, which demands a certificate of its clients.
    static func withTLS(_ name: Certificates.Name = .valid) throws -> (server: RedisServer, port: Int) {
        let certificates = try Certificates.shared
        let port = try freePorts(1)[0]
        let server = try RedisServer(options: [
            "--tls-port", "\(port)", "--bind", "127.0.0.1", "--tls-cert-file", certificates.file(name),
            "--tls-key-file", certificates.key(name), "--tls-ca-cert-file", certificates.authorityFile,
        ])
        return (server, Int(port))
    }

    /// Starts it empty.
    func start() throws {
        let started = try ServerProcess.start(ports: 0, sign: "redis.pid") { [socket, options] folder, _ in
            [
                "redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "777", "--save", "",
                "--appendonly", "no", "--dir", folder.path, "--pidfile", folder.file("redis.pid"),
            ] + options
        }
        process.withLock { $0 = started.process }
    }

    func kill() { process.withLock { $0 = nil } }
}

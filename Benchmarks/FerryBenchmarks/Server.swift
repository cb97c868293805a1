internal import FerryMeasurement

/// The server for the rivals, in a process of its own.
final class Server {
    let url: String
    /// `nil` without TLS.
    let secureURL: String?
    let name: String
    private let nginx: Nginx?
    private let loopback: ChildProcess?

    /// nginx if it is requested and installed, otherwise the loopback server.
    init(preferringNginx: Bool) throws {
        if preferringNginx, let nginx = try Nginx.start() {
            self.nginx = nginx
            loopback = nil
            url = nginx.url
            secureURL = nginx.secureURL
            name = "nginx"
            return
        }
        let process = try ChildProcess([ownExecutable, "worker", "serve"])
        guard let line = process.readLine(), line.hasPrefix("http") else {
            throw BenchmarkError("the loopback server did not start")
        }
        nginx = nil
        loopback = process
        url = line
        secureURL = nil
        name = "loopback"
    }

    func stop() {
        nginx?.stop()
        loopback?.stop()
    }
}

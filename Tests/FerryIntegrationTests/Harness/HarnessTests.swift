import FoundationEssentials
import Glibc
import Testing

/// The servers themselves: they are what the other tests rely on.
@Suite(.timeLimit(.minutes(2))) struct HarnessTests {
    @Test("a missing server is a failure that says so")
    func missing() {
        let error = #expect(throws: ServerError.self) {
            try ServerProcess.start(ports: 1) { _, _ in ["no-such-server"] }
        }
        #expect(error?.description.hasPrefix("no-such-server is not installed") == true)
    }

    @Test("a server that does not start is a failure with its log")
    func broken() {
        let error = #expect(throws: ServerError.self) {
            try ServerProcess.start(ports: 1) { folder, _ in
                try folder.write("nonsense;", to: "nginx.conf")
                return ["nginx", "-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
            }
        }
        #expect(error?.description.contains(#"unknown directive "nonsense""#) == true)
    }

    @Test("a port taken in the meantime makes the harness try another")
    func taken() throws {
        let nginx = try Nginx.shared
        var rounds = 0
        let server = try ServerProcess.start(ports: 1) { folder, ports in
            rounds += 1
            return ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1"]
                + [String(rounds == 1 ? nginx.port(.http) : ports[0])]
        }
        #expect(rounds == 2)
        server.process.stop()
    }

    @Test("with its object a server ends, its folder is removed, and its port is closed")
    func ends() throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { _, ports in
            ["microsocks", "-i", "127.0.0.1", "-p", String(ports[0])]
        }
        #expect(ListeningSockets.include(ports, of: process.pid))
        process.stop()
        #expect(kill(process.pid, 0) != 0 && errno == ESRCH)
        #expect(!FileManager.default.fileExists(atPath: process.folder.path))
    }

    @Test("no server runs as root")
    func notRoot() throws {
        let folder = "/proc/\(try Nginx.shared.pid)"
        let owner = try FileManager.default.attributesOfItem(atPath: folder)[.ownerAccountID] as? Int
        #expect(owner != 0)
    }

    @Test("all servers start side by side")
    func all() throws {
        let squids = try [Squid(.basic, forbidding: 1), Squid(.digest, forbidding: 1)]
        let proxies = try [SOCKSProxy(), SOCKSProxy(isLocked: true)]
        let servers = try [FaultyHTTP2Server(), FaultyHTTP2Server(isSecure: false)]
        let files = try NGHTTPServer()
        let ports = squids.map { $0.port(.open) } + proxies.map(\.port) + servers.map(\.port) + [files.port]
        #expect(Set(ports).count == 7)
    }
}

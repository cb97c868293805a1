import FoundationEssentials

@testable import FerryTestSupport

/// Debian's microsocks, a SOCKS5 proxy (RFC 1928) that looks up names itself if it receives one.
final class SOCKSProxy: Sendable {
    private let process: ServerProcess
    let port: Int

    /// With `isLocked` it serves only the user `ferry` with the password `secret` (RFC 1929).
    init(isLocked: Bool = false) throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { _, ports in
            let credentials = isLocked ? ["-u", "ferry", "-P", "secret"] : []
            return ["microsocks", "-i", "127.0.0.1", "-p", String(ports[0])] + credentials
        }
        self.process = process
        port = ports[0]
    }

    /// The targets it was asked to connect to, `host:port` each, with names as received.
    func targets(count: Int) async throws -> [String] {
        try await eventually("\(count) connections through microsocks") {
            // client[4] 127.0.0.1: connected to localhost:80
            let lines = process.folder.read("output.log").split(separator: "\n").filter {
                $0.contains(" connected to ")
            }
            let targets = lines.compactMap { $0.split(separator: " ").last.map(String.init) }
            return targets.count < count ? nil : targets
        }
    }
}

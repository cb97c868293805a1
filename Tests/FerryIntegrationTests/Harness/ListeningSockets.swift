import FoundationEssentials
import Glibc

/// The ports that a process listens on, from the kernel. A connection to a port would also succeed with another process
/// that took the port in the meantime.
struct ListeningSockets {
    /// Whether the process listens on all of these TCP ports.
    static func include(_ ports: [Int], of pid: Int32) -> Bool {
        let own = sockets(of: pid)
        let listening = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap(listeners)
        return ports.allSatisfy { port in listening.contains { $0.port == port && own.contains($0.inode) } }
    }

    /// The kernel lists listening sockets before the others, of which there may be tens of thousands: reads up to the
    /// first of these.
    private static func listeners(_ table: String) -> [(port: Int, inode: Substring)] {
        let descriptor = open(table, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var found: [(port: Int, inode: Substring)] = []
        var page = [UInt8](repeating: 0, count: 4096)
        while case let count = read(descriptor, &page, page.count), count > 0 {
            // A read returns whole lines.
            for line in String(decoding: page.prefix(count), as: UTF8.self).split(separator: "\n") {
                // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
                let fields = line.split(separator: " ")
                guard fields.count > 9, fields[0] != "sl" else { continue }
                guard fields[3] == "0A" else { return found }
                guard let hex = fields[1].split(separator: ":").last, let port = Int(hex, radix: 16) else { continue }
                found.append((port, fields[9]))
            }
        }
        return found
    }

    /// The inodes of its sockets.
    private static func sockets(of pid: Int32) -> Set<Substring> {
        let folder = "/proc/\(pid)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return Set(
            names.compactMap { name in
                guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)"),
                    target.hasPrefix("socket:[")
                else { return nil }
                return target.dropFirst(8).dropLast()
            })
    }
}

import FoundationEssentials
import Glibc

/// A folder of its own for each server: configuration, content and logs.
final class ServerFolder: Sendable {
    let path: String

    /// Not `TMPDIR`: the servers give up root's rights, and may have no access to root's temporary directory.
    init() throws {
        var template = Array("/tmp/ferry-integration-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw ServerError("mkdtemp: \(String(cString: strerror(errno)))") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func write(_ text: String, to name: String) throws { try write(Array(text.utf8), to: name) }

    func write(_ bytes: [UInt8], to name: String) throws {
        let url = URL(filePath: file(name))
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    /// A sparse file.
    func writeZeros(_ count: Int, to name: String) throws {
        try write("", to: name)
        guard truncate(file(name), count) == 0 else {
            throw ServerError("truncate \(name): \(String(cString: strerror(errno)))")
        }
    }

    func has(_ name: String) -> Bool { access(file(name), F_OK) == 0 }

    /// The content of a file; empty if there is none (yet).
    func read(_ name: String) -> String {
        guard let data = FileManager.default.contents(atPath: file(name)) else { return "" }
        return String(decoding: data, as: UTF8.self)
    }

    /// Gives the folder and its contents to the user that the server runs as.
    func hand(to user: ServerUser) throws {
        guard let ids = user.ids else { return }
        let names = try FileManager.default.subpathsOfDirectory(atPath: path)
        for path in [path] + names.map(file) {
            guard chown(path, ids.user, ids.group) == 0 else {
                throw ServerError("chown \(path): \(String(cString: strerror(errno)))")
            }
        }
    }
}

/// The user that the servers run as. Some refuse to be root and others drop its rights, each in its way; so none of
/// them ever runs as root.
enum ServerUser {
    case caller
    case nobody

    static var current: ServerUser { geteuid() == 0 ? .nobody : .caller }

    /// Empty for the current user.
    var name: String { self == .nobody ? "nobody" : "" }

    var ids: (user: uid_t, group: gid_t)? {
        guard self == .nobody, let entry = getpwnam("nobody") else { return nil }
        return (entry.pointee.pw_uid, entry.pointee.pw_gid)
    }
}

/// Why a server does not run; ends the test.
struct ServerError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

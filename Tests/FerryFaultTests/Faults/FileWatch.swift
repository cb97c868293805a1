import Foundation

/// A file, and whether any process has opened it, as reported by the kernel (inotify(7)).
final class FileWatch {
    let path = NSTemporaryDirectory() + "ferry-watched-\(UUID().uuidString)"
    private let descriptor: Int32

    init() throws {
        try Data("canary".utf8).write(to: URL(filePath: path))
        descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard descriptor >= 0, inotify_add_watch(descriptor, path, UInt32(IN_OPEN)) >= 0 else {
            throw POSIXError(POSIXError.Code(rawValue: errno) ?? .EIO)
        }
    }

    deinit {
        close(descriptor)
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Since the last call. The number is unknown: equal events are merged.
    var wasOpened: Bool {
        var events = [UInt8](repeating: 0, count: 4096)
        return read(descriptor, &events, events.count) > 0
    }
}

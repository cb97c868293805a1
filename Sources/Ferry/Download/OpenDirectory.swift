import Glibc
import Synchronization

/// A directory that is open: what is done to files in it is done there, whatever becomes of its path.
final class OpenDirectory: Sendable {
    /// Which directory it is, by whatever path.
    struct Identity: Sendable, Hashable {
        var device: dev_t
        var number: ino_t
    }

    let descriptor: Int32
    let path: String
    let identity: Identity
    /// Later ones have higher numbers.
    let order: UInt64

    private static let opened = Atomic<UInt64>(0)

    init(_ path: String) throws(FileFault) {
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw FileFault(path) }
        var status = stat()
        if fstat(descriptor, &status) != 0 {
            let fault = FileFault(path)
            close(descriptor)
            throw fault
        }
        self.path = path
        identity = Identity(device: status.st_dev, number: status.st_ino)
        order = Self.opened.add(1, ordering: .relaxed).newValue
    }

    deinit { close(descriptor) }
}

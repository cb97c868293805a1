internal import Glibc

/// Held by one process at a time (flock(2)), until it is closed.
struct FileLock {
    private let file: Int32

    /// Waits for the others, who are done in milliseconds.
    init(_ path: String) throws(CacheFault) {
        file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CacheFault(errno: errno, "open") }
        while flock(file, LOCK_EX) != 0 {
            let code = errno
            if code == EINTR { continue }
            Glibc.close(file)
            throw CacheFault(errno: code, "flock")
        }
    }

    func close() { Glibc.close(file) }
}

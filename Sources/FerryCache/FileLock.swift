internal import Glibc

/// Held by one process at a time (flock(2)), until it is closed.
struct FileLock {
    private let file: Int32

    /// Waits for the others, who are done in milliseconds. One that is stopped meanwhile is not waited for longer than
    /// so many microseconds; then the fault is `busy`.
    init(_ path: String, patience: Int64) throws(CacheFault) {
        file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CacheFault(errno: errno, "open") }
        let end = ContinuousClock.now + .microseconds(patience)
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            if code == EWOULDBLOCK && ContinuousClock.now < end {
                usleep(1000)
                continue
            }
            Glibc.close(file)
            throw code == EWOULDBLOCK ? CacheFault(.busy, "flock: held by another") : CacheFault(errno: code, "flock")
        }
    }

    func close() { Glibc.close(file) }
}

internal import Glibc
import Synchronization

/// The files of a store: makes them, opens connections, and puts what cannot be used aside.
///
/// Processes that share a directory open one after the other, under a lock in it.
final class CacheFiles: Sendable {
    /// The format of the records and of the schema. Another one gets a file of its own.
    private static let name = "entries-1.sqlite"
    private static let asideSuffix = ".aside"
    /// Beside the database, once it is in use.
    private static let companions = ["-wal", "-shm"]

    private struct State {
        /// Goes up whenever open connections belong to a database that is not the one in use any more.
        var epoch = 0
        /// Of the database that was opened last.
        var inode: UInt64?
    }

    private let directory: String
    private let path: String
    private let lockPath: String
    /// With others, in microseconds.
    private let patience: Int64
    private let state = Mutex(State())
    /// Of the directory, by all who share it.
    let removals: RemovalCount

    init(_ options: CacheStoreOptions) {
        directory = options.directory
        patience = options.patience
        path = directory + "/" + Self.name
        lockPath = directory + "/lock"
        removals = RemovalCount(lockPath, patience: patience)
    }

    /// Connections of an older epoch are to be let go.
    var epoch: Int { state.withLock { $0.epoch } }

    /// Opens a connection to the database, which is made when there is none. One that is damaged or somebody else's is
    /// put aside, once; `wasPutAside` says so.
    func open(wasPutAside: inout Bool) throws(CacheFault) -> CacheDatabase {
        try makeDirectory()
        let lock = try FileLock(lockPath, patience: patience)
        defer { lock.close() }
        removals.open()
        do throws(CacheFault) {
            return try open()
        } catch {
            guard error.condemns else { throw error }
            try putAside()
            wasPutAside = true
            return try open()
        }
    }

    private func open() throws(CacheFault) -> CacheDatabase {
        let file = try makeFile()
        let epoch = state.withLock { state in
            // Also where nobody has noticed: a process that has only read has no writer that looks.
            if let last = state.inode, last != file.inode { state.epoch += 1 }
            state.inode = file.inode
            return state.epoch
        }
        let database = try CacheDatabase(
            path: path, isNew: file.size == 0, inode: file.inode, epoch: epoch, patience: patience)
        // SQLite gives them the rights of the database, but finds some that are there already.
        for companion in Self.companions { chmod(path + companion, 0o600) }
        return database
    }

    /// The database of a connection proved damaged. Unless another process was faster, it makes room.
    func condemn(inode: UInt64) throws(CacheFault) -> Bool {
        let lock = try FileLock(lockPath, patience: patience)
        defer { lock.close() }
        state.withLock { $0.epoch += 1 }
        guard self.inode == inode else { return false }
        try putAside()
        return true
    }

    /// Whether the file of a connection is still the one in use. When somebody has removed or replaced it, all
    /// connections are to be let go.
    func isCurrent(inode: UInt64) -> Bool {
        if self.inode == inode { return true }
        state.withLock { $0.epoch += 1 }
        return false
    }

    private var inode: UInt64? {
        var status = stat()
        return lstat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    private func putAside() throws(CacheFault) {
        // The one that was put aside before goes: no more than one is kept.
        guard rename(path, path + Self.asideSuffix) == 0 else { throw CacheFault(errno: errno, "rename") }
        for companion in Self.companions {
            if rename(path + companion, path + Self.asideSuffix + companion) != 0 {
                unlink(path + Self.asideSuffix + companion)
            }
        }
    }

    private func makeDirectory() throws(CacheFault) {
        if mkdir(directory, 0o700) == 0 { return }
        var at = directory.startIndex
        while errno == ENOENT {
            guard let slash = directory[at...].dropFirst().firstIndex(of: "/") else { break }
            at = slash
            mkdir(String(directory[..<slash]), 0o700)
            errno = ENOENT
        }
        if mkdir(directory, 0o700) == 0 || errno == EEXIST { return }
        throw CacheFault(errno: errno, "mkdir")
    }

    /// An empty file with our rights, before SQLite makes one with the rights of everybody. A link is not followed.
    ///
    /// A file that is there is only looked at: to close any descriptor of it would let go of all locks that the
    /// connections of this process hold on it (fcntl(2)), and another process would take the log away from under them.
    private func makeFile() throws(CacheFault) -> (size: Int, inode: UInt64) {
        var status = stat()
        if lstat(path, &status) != 0 {
            guard errno == ENOENT else { throw CacheFault(errno: errno, "lstat") }
            // One that was not there has no locks yet.
            let file = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw CacheFault(errno: errno, "open") }
            defer { close(file) }
            guard fstat(file, &status) == 0 else { throw CacheFault(errno: errno, "fstat") }
        }
        // Something that is no file stands in its place.
        if status.st_mode & S_IFMT != S_IFREG { throw CacheFault(.foreign, "lstat: not a file") }
        if status.st_mode & 0o777 != 0o600 { chmod(path, 0o600) }
        return (Int(status.st_size), UInt64(status.st_ino))
    }
}

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

/// How often entries were removed from a directory, by whichever process: a number in the file of its lock. What is
/// kept in memory is given out only where it has not gone up since.
///
/// One look is one read of eight bytes. Nothing is locked for it: a look at the same moment as a removal may be before
/// it.
final class RemovalCount: Sendable {
    private let path: String
    /// With others, in microseconds.
    private let patience: Int64
    private let file = Atomic<Int32>(-1)
    private let seen = Atomic<UInt64>(0)

    init(_ path: String, patience: Int64) {
        self.path = path
        self.patience = patience
    }

    deinit { close() }

    /// From here on removals are noticed. Called under the lock of the directory, for every connection that is opened:
    /// the directory may be another one by now.
    func open() {
        let opened = Glibc.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard opened >= 0 else { return }
        let old = file.load(ordering: .relaxed)
        if old < 0 {
            seen.store(Self.read(opened), ordering: .relaxed)
            file.store(opened, ordering: .releasing)
        } else {
            // Others may be reading by this very number.
            dup2(opened, old)
            _ = fcntl(old, F_SETFD, FD_CLOEXEC)
            Glibc.close(opened)
        }
    }

    /// Calls `forget` when others have removed something since the last time.
    func hear(_ forget: () -> Void) {
        let file = file.load(ordering: .acquiring)
        if file < 0 { return }
        let count = Self.read(file)
        if count == seen.load(ordering: .relaxed) { return }
        forget()
        seen.store(count, ordering: .releasing)
    }

    /// Says that something was removed; what this process has in memory it takes out itself.
    func add() {
        let file = file.load(ordering: .acquiring)
        if file < 0 { return }
        let lock = try? FileLock(path, patience: patience)
        defer { lock?.close() }
        let old = Self.read(file)
        withUnsafeBytes(of: (old &+ 1).littleEndian) { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
        // Without the lock somebody else may have counted at the same moment: then one forgets more than one must.
        if lock == nil { return }
        // Unless somebody else's is still to be heard of.
        _ = seen.compareExchange(expected: old, desired: old &+ 1, ordering: .releasing)
    }

    /// Nothing is noticed any more. Any number of times.
    func close() {
        let old = file.exchange(-1, ordering: .acquiringAndReleasing)
        if old >= 0 { Glibc.close(old) }
    }

    /// 0 where there is no number yet.
    private static func read(_ file: Int32) -> UInt64 {
        var number: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &number) { pread(file, $0.baseAddress, $0.count, 0) }
        return count == MemoryLayout<UInt64>.size ? UInt64(littleEndian: number) : 0
    }
}

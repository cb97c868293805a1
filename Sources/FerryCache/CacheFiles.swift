import FerrySynchronization
internal import Glibc

/// The files of a store: creates them, opens connections, and moves unusable databases aside.
///
/// Processes that share a directory open it one after the other, under a lock in it.
final class CacheFiles: Sendable {
    /// The version of the format of records and schema is in the name: another version gets a file of its own.
    private static let name = "entries-1.sqlite"
    private static let asideSuffix = ".aside"
    /// Files beside the database while it is in use.
    private static let companions = ["-wal", "-shm"]

    private struct State {
        /// Incremented when open connections belong to a database that is no longer in use.
        var epoch = 0
        /// The inode of the database that was opened last.
        var inode: UInt64?
    }

    private let directory: String
    private let path: String
    private let lockPath: String
    /// How long to wait for other processes, in microseconds.
    private let patience: Int64
    private let state = Mutex(State())
    /// The count of removals in the directory, by all processes that share it.
    let removals: RemovalCount

    init(_ options: CacheStoreOptions) {
        directory = options.directory
        patience = options.patience
        path = directory + "/" + Self.name
        lockPath = directory + "/lock"
        removals = RemovalCount(lockPath, patience: patience)
    }

    /// Connections of an older epoch must be closed.
    var epoch: Int { state.withLock { $0.epoch } }

    /// Opens a connection to the database, which is created if there is none. A damaged or foreign database is moved
    /// aside, once; then `wasPutAside` is set.
    func open(wasPutAside: inout Bool) throws(CacheFault) -> CacheDatabase {
        try makeDirectory()
        try checkDirectory()
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
            // Also if nobody has noticed: a process that has only read has no writer that checks.
            if let last = state.inode, last != file.inode { state.epoch += 1 }
            state.inode = file.inode
            return state.epoch
        }
        let database = try CacheDatabase(
            path: path, isNew: file.size == 0, inode: file.inode, epoch: epoch, patience: patience)
        // SQLite gives them the permissions of the database, but some may exist already.
        for companion in Self.companions { chmod(path + companion, 0o600) }
        return database
    }

    /// Moves a damaged database aside, unless another process has done so already.
    func condemn(inode: UInt64) throws(CacheFault) -> Bool {
        let lock = try FileLock(lockPath, patience: patience)
        defer { lock.close() }
        state.withLock { $0.epoch += 1 }
        guard self.inode == inode else { return false }
        try putAside()
        return true
    }

    /// Whether the file of a connection is still the current one. If it was removed or replaced, all connections must
    /// be closed.
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
        // Only one is kept: an earlier one is replaced.
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
            guard let slash = directory.utf8[at...].dropFirst().firstIndex(of: UInt8(ascii: "/")) else { break }
            at = slash
            mkdir(String(directory[..<slash]), 0o700)
            errno = ENOENT
        }
        if mkdir(directory, 0o700) == 0 || errno == EEXIST { return }
        throw CacheFault(errno: errno, "mkdir")
    }

    /// Throws if another user could put responses into the directory. Write permission of others is removed. A sticky
    /// directory, like `/tmp`, is meant for many users, so its permissions are not changed.
    private func checkDirectory() throws(CacheFault) {
        var status = stat()
        guard stat(directory, &status) == 0 else { throw CacheFault(errno: errno, "stat") }
        if status.st_mode & S_IFMT != S_IFDIR { throw CacheFault(errno: ENOTDIR, "stat") }
        try Self.checkOwner(of: status, "directory")
        if status.st_mode & 0o022 == 0 { return }
        if status.st_mode & S_ISVTX == 0 { chmod(directory, status.st_mode & 0o7755) }
        guard stat(directory, &status) == 0 else { throw CacheFault(errno: errno, "stat") }
        if status.st_mode & 0o022 != 0 { throw CacheFault(.noPermission, "directory: others may write to it") }
    }

    private static func checkOwner(of status: stat, _ what: String) throws(CacheFault) {
        if status.st_uid != geteuid() { throw CacheFault(.noPermission, "\(what): belongs to another user") }
    }

    /// Creates an empty file with our permissions, before SQLite creates one that everybody can read. A link is not
    /// followed.
    ///
    /// An existing file is only inspected: closing any descriptor of it would release all locks that the connections of
    /// this process hold on it (fcntl(2)), and another process would remove the log while they use it.
    private func makeFile() throws(CacheFault) -> (size: Int, inode: UInt64) {
        var status = stat()
        if lstat(path, &status) != 0 {
            guard errno == ENOENT else { throw CacheFault(errno: errno, "lstat") }
            // Connections to a database that somebody has removed still map them: SQLite would truncate them.
            for companion in Self.companions { unlink(path + companion) }
            // A new file has no locks yet.
            let file = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw CacheFault(errno: errno, "open") }
            defer { close(file) }
            guard fstat(file, &status) == 0 else { throw CacheFault(errno: errno, "fstat") }
        }
        // There is something else than a file.
        if status.st_mode & S_IFMT != S_IFREG { throw CacheFault(.foreign, "lstat: not a file") }
        try Self.checkOwner(of: status, "database")
        // SQLite reads what is in the log of another user, too.
        for companion in Self.companions {
            var log = stat()
            if lstat(path + companion, &log) == 0 { try Self.checkOwner(of: log, "log") }
        }
        if status.st_mode & 0o777 != 0o600 { chmod(path, 0o600) }
        return (Int(status.st_size), UInt64(status.st_ino))
    }
}

/// A lock file: held by one process at a time (flock(2)), until it is closed.
struct FileLock {
    private let file: Int32

    /// Takes the lock. Other processes normally hold it for milliseconds. If one is stopped meanwhile, this gives up
    /// after `patience` microseconds with the fault `busy`.
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

/// Which entries were removed from a directory, by any process. The directory's lock file has their number, and behind
/// it the digests of the last ones. An entry in memory is used only if it was not removed since.
///
/// A check reads eight bytes and takes no lock. So a check at the same moment as a removal may still see the old
/// number.
final class RemovalCount: Sendable {
    private let path: String
    /// How long to wait for other processes, in microseconds.
    private let patience: Int64
    private let file = Atomic<Int32>(-1)
    private let seen = Atomic<UInt64>(0)
    /// How often `hear` has found removals of unknown entries by other processes.
    private let heard = Atomic<UInt64>(0)

    /// The number of digests in the file. The removal with the number n is in the slot n modulo this number: first its
    /// number, so that a slot that another version of the program did not write is noticed, then the digest.
    private static let slots: UInt64 = 4095
    private static let slotSize = 8 + CacheDigest.count
    /// The maximum number of removals that are read, or written, at once: while so many are being written, so many can
    /// still be read.
    private static let most = slots / 2

    init(_ path: String, patience: Int64) {
        self.path = path
        self.patience = patience
    }

    deinit { close() }

    /// Starts to notice removals. Called under the lock of the directory for every connection that is opened, as the
    /// directory may have been replaced.
    func open() {
        let opened = Glibc.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard opened >= 0 else { return }
        let old = file.load(ordering: .relaxed)
        if old < 0 {
            seen.store(Self.read(opened), ordering: .relaxed)
            file.store(opened, ordering: .releasing)
        } else {
            let isSame = Self.isSame(opened, old)
            // Other threads may be reading with this descriptor.
            dup2(opened, old)
            // In another file the numbers are others: no number of a file is as high.
            if !isSame { seen.store(.max, ordering: .releasing) }
            _ = fcntl(old, F_SETFD, FD_CLOEXEC)
            Glibc.close(opened)
        }
    }

    /// Calls `forget` with the name of each key whose entry another process has removed since the last call, or with
    /// `nil` if it is not known which.
    func hear(_ forget: (_ name: String?) -> Void) {
        let file = file.load(ordering: .acquiring)
        if file < 0 { return }
        // In this order: a removal by this process moves both.
        let last = seen.load(ordering: .acquiring)
        let count = Self.read(file)
        if count == last { return }
        if let digests = Self.digests(in: file, after: last, to: count) {
            for digest in digests { forget(digest.hexadecimal) }
        } else {
            forget(nil)
            heard.wrappingAdd(1, ordering: .relaxed)
        }
        // Unless another thread has seen more.
        _ = seen.compareExchange(expected: last, desired: count, ordering: .acquiringAndReleasing)
    }

    var heardCount: UInt64 { heard.load(ordering: .relaxed) }

    /// Counts removals by this process, which drops its own entries in memory itself. `nil` stands for all entries.
    func add(_ removed: [CacheDigest?]) {
        let file = file.load(ordering: .acquiring)
        if file < 0 { return }
        let lock = try? FileLock(path, patience: patience)
        defer { lock?.close() }
        let old = Self.read(file)
        let digests = removed.compactMap { $0 }
        var new = old &+ UInt64(digests.count)
        // Without the lock another process may write the same slots at this moment.
        let isNamed =
            lock != nil && digests.count == removed.count && digests.count < Int(Self.most)
            && Self.write(digests, to: file, after: old)
        // A process that did not get the lock may have counted meanwhile.
        let now = Self.read(file)
        // More than the file has room for: others cannot know which.
        if !isNamed || now != old { new = max(old, now) &+ Self.slots &+ 1 }
        withUnsafeBytes(of: new.littleEndian) { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
        // Without the lock this process forgets more than necessary.
        if lock == nil || now != old { return }
        // Unless a removal by another process has not been noticed yet.
        _ = seen.compareExchange(expected: old, desired: new, ordering: .releasing)
    }

    /// Stops noticing removals. May be called several times.
    func close() {
        let old = file.exchange(-1, ordering: .acquiringAndReleasing)
        if old >= 0 { Glibc.close(old) }
    }

    /// The number in the file; 0 if there is none yet.
    private static func read(_ file: Int32) -> UInt64 {
        var number: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &number) { pread(file, $0.baseAddress, $0.count, 0) }
        return count == MemoryLayout<UInt64>.size ? UInt64(littleEndian: number) : 0
    }

    private static func offset(of number: UInt64) -> off_t { off_t(8 + Int(number % slots) * slotSize) }

    /// The digests of the removals behind `last`; `nil` if they are not all known.
    private static func digests(in file: Int32, after last: UInt64, to count: UInt64) -> [CacheDigest]? {
        if count < last || count - last >= most || count == .max { return nil }
        var digests: [CacheDigest] = []
        var next = last + 1
        while next <= count {
            // Up to the end of the file, and then from its beginning.
            let length = min(Int(count - next) + 1, Int(slots - next % slots))
            let isRead = withUnsafeTemporaryAllocation(byteCount: length * slotSize, alignment: 8) { bytes in
                if pread(file, bytes.baseAddress, bytes.count, offset(of: next)) != bytes.count { return false }
                for index in 0..<length {
                    let slot = UnsafeRawBufferPointer(rebasing: bytes[(index * slotSize)..<((index + 1) * slotSize)])
                    if UInt64(littleEndian: slot.load(as: UInt64.self)) != next { return false }
                    digests.append(CacheDigest(bytes: UnsafeRawBufferPointer(rebasing: slot[8...])))
                    next += 1
                }
                return true
            }
            if !isRead { return nil }
        }
        // A process that has removed many since may have been writing to these slots meanwhile.
        let now = read(file)
        return now >= count && now - last < most ? digests : nil
    }

    private static func isSame(_ one: Int32, _ other: Int32) -> Bool {
        var (first, second) = (stat(), stat())
        guard fstat(one, &first) == 0, fstat(other, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    /// Writes digests behind the number `last`, before the number itself. Returns `false` if a write fails, for
    /// example because the disk is full.
    private static func write(_ digests: [CacheDigest], to file: Int32, after last: UInt64) -> Bool {
        for (index, digest) in digests.enumerated() {
            let number = last &+ UInt64(index) &+ 1
            let isWritten = withUnsafeTemporaryAllocation(byteCount: slotSize, alignment: 8) { slot in
                slot.storeBytes(of: number.littleEndian, as: UInt64.self)
                digest.withBytes { UnsafeMutableRawBufferPointer(rebasing: slot[8...]).copyMemory(from: $0) }
                return pwrite(file, slot.baseAddress, slot.count, offset(of: number)) == slot.count
            }
            if !isWritten { return false }
        }
        return true
    }
}

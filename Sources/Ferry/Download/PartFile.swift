import FerrySynchronization
import Glibc

/// The partial file beside the target. It is locked: no other run, of this process or another, writes to it at the same
/// time.
///
/// All file operations are here, below one open directory: no name is a path, no symbolic link is followed, and a file
/// with several names is not written to. Every function may wait for the disk.
final class PartFile: Sendable {
    /// Open for reading and writing as long as this object exists.
    let descriptor: Int32
    /// The size when it was opened.
    let openedLength: Int64
    let directory: OpenDirectory
    let part: String
    let metadata: String
    /// Whether the lock was released.
    private let isFree = Atomic<Bool>(false)
    /// The errno of the first sync that failed; 0 without one.
    private let lost = Atomic<Int32>(0)

    /// Opens or creates the partial file. Throws, without creating anything, if it could not replace `target`. Waits
    /// for the lock if a run of this process that has ended still has it, until `hasEnded`.
    init(
        in directoryPath: String, part: String, metadata: String, target: String?, unless hasEnded: () -> Bool
    ) throws(FileFault) {
        // A C string would end at the NUL, and be the path of another file.
        if directoryPath.utf8.contains(0) { throw FileFault(directoryPath, errno: EINVAL) }
        directory = try OpenDirectory(directoryPath)
        if let target { try Self.check(target, in: directory.descriptor, path: directoryPath) }
        (descriptor, openedLength) = try Self.make(part, in: directory, unless: hasEnded)
        self.part = part
        self.metadata = metadata
        if hasEnded() { isLeft() } else { LeftParts.shared.remove(part, in: directory) }
    }

    deinit { close(descriptor) }

    private static func make(
        _ name: String, in directory: OpenDirectory, unless hasEnded: () -> Bool
    ) throws(FileFault) -> (descriptor: Int32, length: Int64) {
        while true {
            // Non-blocking, because opening a FIFO would block the caller. It has no effect on a regular file.
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
            let descriptor = openat(directory.descriptor, name, flags, 0o666)
            if descriptor < 0 { throw FileFault(directory.path + "/" + name) }
            do throws(FileFault) {
                if let length = try lock(descriptor, as: name, in: directory, unless: hasEnded) {
                    return (descriptor, length)
                }
            } catch {
                close(descriptor)
                LeftParts.shared.released(name, in: directory)
                throw error
            }
            close(descriptor)
            LeftParts.shared.released(name, in: directory)
            // Nobody needs another one, nor the lock of it.
            if hasEnded() { throw FileFault(directory.path + "/" + name, errno: ECANCELED) }
        }
    }

    /// Locks it and returns its size; `nil` if the name no longer refers to it.
    private static func lock(
        _ descriptor: Int32, as name: String, in directory: OpenDirectory, unless hasEnded: () -> Bool
    ) throws(FileFault) -> Int64? {
        let path = directory.path + "/" + name
        var opened = stat()
        var named = stat()
        var isWaiting = false
        var polls = 0
        defer { if isWaiting { LeftParts.shared.stopsWaiting() } }
        while true {
            let isLeft = LeftParts.shared.contains(name, in: directory)
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
                // If the disk hangs from here on, the run may end, and the next one waits for the lock.
                LeftParts.shared.add(name, in: directory)
                break
            }
            // Some file systems have no locks: there the file is not protected.
            if errno == ENOLCK || errno == EOPNOTSUPP { break }
            if errno == EINTR { continue }
            if errno != EWOULDBLOCK { throw FileFault(path) }
            // Also if its run has ended just now.
            let mayWait = isLeft || LeftParts.shared.contains(name, in: directory)
            if mayWait && !isWaiting { isWaiting = LeftParts.shared.startsWaiting() }
            guard mayWait && isWaiting && !hasEnded() else {
                throw FileFault(path, errno: EBUSY, words: "another download writes to it")
            }
            // A thread that waits in the system call could get the lock after another run, when that has loaded all.
            usleep(5_000)
            polls += 1
            // About once a second. After a write that hung, the name outlives the lock, which may be another's by now.
            if polls % 200 == 0 && LeftParts.isElsewhere(descriptor) { LeftParts.shared.remove(name, in: directory) }
        }
        if fstat(descriptor, &opened) != 0 { throw FileFault(path) }
        guard opened.st_mode & S_IFMT == S_IFREG else {
            throw FileFault(path, errno: EINVAL, words: "not a regular file")
        }
        // The previous holder of the lock may have moved it to its place in the meantime.
        guard fstatat(directory.descriptor, name, &named, AT_SYMLINK_NOFOLLOW) == 0,
            named.st_ino == opened.st_ino, named.st_dev == opened.st_dev
        else { return nil }
        if opened.st_nlink == 1 { return Int64(opened.st_size) }
        // It has another name somewhere, whose content must not change.
        if unlinkat(directory.descriptor, name, 0) != 0 { throw FileFault(path) }
        return nil
    }

    /// The run has ended, or is about to, and the lock may be released later: the next run of this process waits for
    /// it.
    func isLeft() {
        LeftParts.shared.add(part, in: directory)
        if isFree.load(ordering: .sequentiallyConsistent) { LeftParts.shared.released(part, in: directory) }
    }

    var partPath: String { directory.path + "/" + part }

    // MARK: Reading

    func length() throws(FileFault) -> Int64 {
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw FileFault(partPath) }
        return Int64(status.st_size)
    }

    /// The metadata; `nil` if there is none that can be used. Throws if it cannot be read at the moment, because the
    /// partial file may still be good.
    func readMetadata() throws(FileFault) -> DownloadMetadata? {
        let path = directory.path + "/" + metadata
        let file = openat(directory.descriptor, metadata, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        if file < 0 {
            if errno == ENOENT || errno == ELOOP { return nil }
            throw FileFault(path)
        }
        defer { close(file) }
        var bytes: [UInt8] = []
        var space = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 20 {
            let count = read(file, &space, space.count)
            if count < 0 && errno == EINTR { continue }
            if count < 0 { throw FileFault(path) }
            if count == 0 { break }
            bytes += space.prefix(count)
        }
        return DownloadMetadata(bytes)
    }

    // MARK: Writing

    /// Empties, extends or truncates the file. If `isDurable`, this is on disk when it returns: bytes of one version
    /// must never be found beside the metadata of another.
    func setLength(_ length: Int64, isDurable: Bool = false) throws(FileFault) {
        if ftruncate(descriptor, off_t(length)) != 0 { throw FileFault(partPath) }
        // There is nothing left that could be missing.
        if length == 0 { lost.store(0, ordering: .releasing) }
        if isDurable { try sync(fsync) }
    }

    /// The error of a sync that has failed: bytes may be missing that were written.
    var lossFault: FileFault? {
        let error = lost.load(ordering: .acquiring)
        return error == 0 ? nil : FileFault(partPath, errno: error)
    }

    /// Syncs the file with this function of the system. Throws also if an earlier sync has failed: the system tells
    /// once that it could not write bytes, and from then on takes them for written, so later syncs succeed without
    /// them (fsync(2)).
    private func sync(_ call: (Int32) -> Int32) throws(FileFault) {
        var error = lost.load(ordering: .acquiring)
        while error == 0, call(descriptor) != 0 {
            // Interrupted by a signal: nothing was reported.
            if errno == EINTR { continue }
            error = errno
            lost.store(error, ordering: .releasing)
        }
        if error != 0 { throw FileFault(partPath, errno: error) }
    }

    /// Writes the metadata and replaces an older one in one step.
    func write(_ content: DownloadMetadata) throws(FileFault) {
        let fresh = metadata + "~"
        let path = directory.path + "/" + metadata
        unlinkat(directory.descriptor, fresh, 0)
        let file = openat(directory.descriptor, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if file < 0 { throw FileFault(path) }
        defer { close(file) }
        do throws(FileFault) {
            try writeAll(content.bytes, to: file, at: 0, path: path)
            if renameat(directory.descriptor, fresh, directory.descriptor, metadata) != 0 { throw FileFault(path) }
        } catch {
            unlinkat(directory.descriptor, fresh, 0)
            throw error
        }
    }

    /// Saves the progress of the segments, after syncing their data. If this fails, or a sync has failed before, the
    /// older metadata on disk is still valid.
    func note(_ content: DownloadMetadata) {
        do throws(FileFault) {
            try sync(fdatasync)
            try write(content)
        } catch {}
    }

    /// Deletes the metadata. It is called before other bytes are written, so that it is gone even after a crash.
    func removeMetadata() throws(FileFault) {
        var status = stat()
        // Usually there is none, and checking does not delay other work in the directory.
        if fstatat(directory.descriptor, metadata, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT { return }
        if unlinkat(directory.descriptor, metadata, 0) == 0 {
            if fsync(directory.descriptor) != 0 { throw FileFault(directory.path) }
        } else if errno != ENOENT {
            throw FileFault(directory.path + "/" + metadata)
        }
    }

    /// Writes bytes from memory.
    func write(_ bytes: [UInt8], at offset: Int64) throws(FileFault) {
        try writeAll(bytes, to: descriptor, at: offset, path: partPath)
    }

    private func writeAll(_ bytes: [UInt8], to file: Int32, at offset: Int64, path: String) throws(FileFault) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(file, $0.baseAddress! + done, $0.count - done, off_t(offset) + off_t(done))
            }
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { throw FileFault(path, errno: count < 0 ? errno : ENOSPC) }
            done += count
        }
    }

    // MARK: End

    /// Throws if the target cannot be replaced: a directory, a device, a pipe, also behind a symbolic link.
    static func check(_ name: String, in directory: Int32, path: String) throws(FileFault) {
        var status = stat()
        if fstatat(directory, name, &status, 0) != 0 { return }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: throw FileFault(path + "/" + name, errno: EISDIR)
        default: throw FileFault(path + "/" + name, errno: EINVAL, words: "not a regular file")
        }
    }

    /// Syncs the directory, together with other callers of the same one.
    func syncDirectory(then end: @escaping @Sendable (FileFault?) -> Void) {
        DirectorySyncs.shared.sync(directory, then: end)
    }

    /// Deletes the partial file and its metadata.
    func remove() {
        unlinkat(directory.descriptor, metadata, 0)
        unlinkat(directory.descriptor, part, 0)
    }

    /// Releases the lock now rather than with the last reference.
    func unlock() {
        _ = flock(descriptor, LOCK_UN)
        isFree.store(true, ordering: .sequentiallyConsistent)
        LeftParts.shared.released(part, in: directory)
    }

    /// The SHA-256 of a whole open file; `nil` if `goesOn` returned `false`.
    static func sha256(
        _ descriptor: Int32, _ path: String, while goesOn: () -> Bool
    ) throws(FileFault) -> String? {
        var digest = SHA256()
        var space = [UInt8](repeating: 0, count: 256 * 1024)
        var offset: Int64 = 0
        while goesOn() {
            let count = pread(descriptor, &space, space.count, off_t(offset))
            if count < 0 && errno == EINTR { continue }
            if count < 0 { throw FileFault(path) }
            if count == 0 { return digest.hexadecimal() }
            space.withUnsafeBytes { digest.add(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += Int64(count)
        }
        return nil
    }
}

extension PartFile {
    /// Turns the partial file into the file: syncs its bytes and gives it its name, which is on disk after a sync of
    /// the directory. An existing file is replaced if `replaces`; otherwise the file gets the first free name of
    /// `x.txt`, `x-1.txt` and so on. Returns the name; `nil` if the run has ended before the file got one.
    func place(
        as name: String, replaces: Bool, hasMetadata: Bool, unless hasEnded: () -> Bool
    ) throws(FileFault) -> String? {
        try sync(fsync)
        // A run that ends stays ended, so this is decided here, once, even if nobody waited for the sync.
        if hasEnded() { return nil }
        var taken = name
        if replaces {
            try Self.check(name, in: directory.descriptor, path: directory.path)
            if renameat(directory.descriptor, part, directory.descriptor, name) != 0 {
                throw FileFault(directory.path + "/" + name)
            }
        } else {
            var number = 0
            while try !take(taken) {
                number += 1
                if number > Self.mostOfAName { throw FileFault(directory.path + "/" + name, errno: EEXIST) }
                taken = SafeFileName.numbered(name, number)
            }
        }
        // After a crash here, the remaining metadata has no effect without a partial file.
        if hasMetadata { unlinkat(directory.descriptor, metadata, 0) }
        unlock()
        return taken
    }

    /// Gives the partial file a name unless that is taken, as one atomic step.
    private func take(_ name: String) throws(FileFault) -> Bool {
        let directory = directory.descriptor
        if linkat(directory, part, directory, name, 0) == 0 {
            // After a crash here, the remaining partial file is recognised by its second name, and deleted.
            unlinkat(directory, part, 0)
            return true
        }
        switch errno {
        case EEXIST: return false
        case EPERM, EOPNOTSUPP, EMLINK, ENOSYS: break
        default: throw FileFault(self.directory.path + "/" + name)
        }
        // If the file system allows only one name per file, an empty file reserves the name.
        let empty = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        if empty < 0 && errno == EEXIST { return false }
        if empty >= 0 { close(empty) }
        if empty >= 0 && renameat(directory, part, directory, name) == 0 { return true }
        let fault = FileFault(self.directory.path + "/" + name)
        if empty >= 0 { unlinkat(directory, name, 0) }
        throw fault
    }

    /// The maximum number of files with one name.
    private static let mostOfAName = 9_999
}

/// An open directory. File operations use its descriptor, so renaming the directory does not affect them.
final class OpenDirectory: Sendable {
    /// Identifies the directory independently of its path.
    struct Identity: Sendable, Hashable {
        var device: dev_t
        var number: ino_t
    }

    let descriptor: Int32
    let path: String
    let identity: Identity
    /// The order of opening: later ones have higher numbers.
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

/// The error of the system for a file that could not be read or written.
struct FileFault: Error, Sendable {
    var path: String
    var errno: Int32
    /// Ferry's own message, if the system's would be misleading.
    var words: String?

    init(_ path: String, errno: Int32 = Glibc.errno, words: String? = nil) {
        self.path = path
        self.errno = errno
        self.words = words
    }

    var message: String { "\(path): \(words ?? String(cString: strerror(errno)))" }
}

extension RequestError {
    /// The error of a download whose file could not be opened, written or renamed.
    init(_ fault: FileFault, url: String, phase: RequestPhase) {
        var facts = RequestError(preparing: .fileIO, message: fault.message, url: url).facts
        facts.phase = phase
        facts.errno = fault.errno
        self.init(facts)
    }
}

import Glibc
import Synchronization

/// The part of a file beside its target, locked: no other run, of this process or another, writes to it meanwhile.
///
/// All that is done to files is done here, below one open directory: no name is a path, no symbolic link is followed,
/// and a file that has other names is not written to. Every function may wait for the disk.
final class PartFile: Sendable {
    /// Open as long as this lives; it may be read and written.
    let descriptor: Int32
    /// Its bytes when it was opened.
    let openedLength: Int64
    let directory: OpenDirectory
    let part: String
    let metadata: String

    /// Opens it, empty when there is none yet. Throws, with nothing made, where it could not take the place of
    /// `target`.
    init(in directoryPath: String, part: String, metadata: String, target: String?) throws(FileFault) {
        // As a C string it would end there, and be the path of another one.
        if directoryPath.utf8.contains(0) { throw FileFault(directoryPath, errno: EINVAL) }
        directory = try OpenDirectory(directoryPath)
        if let target { try Self.check(target, in: directory.descriptor, path: directoryPath) }
        (descriptor, openedLength) = try Self.make(part, in: directory.descriptor, path: directoryPath + "/" + part)
        self.part = part
        self.metadata = metadata
    }

    deinit { close(descriptor) }

    private static func make(
        _ name: String, in directory: Int32, path: String
    ) throws(FileFault) -> (descriptor: Int32, length: Int64) {
        while true {
            // Not blocking, or a FIFO in its place would hold the caller; with a regular file it means nothing.
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
            let descriptor = openat(directory, name, flags, 0o666)
            if descriptor < 0 { throw FileFault(path) }
            do throws(FileFault) {
                if let length = try lock(descriptor, as: name, in: directory, path: path) {
                    return (descriptor, length)
                }
            } catch {
                close(descriptor)
                throw error
            }
            close(descriptor)
        }
    }

    /// Its length from then on; `nil` when it is not, or no longer, what the name stands for.
    private static func lock(
        _ descriptor: Int32, as name: String, in directory: Int32, path: String
    ) throws(FileFault) -> Int64? {
        var opened = stat()
        var named = stat()
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { throw FileFault(path, errno: EBUSY, words: "another download writes to it") }
            // Some file systems have no locks: there nobody is warned.
            if errno != ENOLCK && errno != EOPNOTSUPP { throw FileFault(path) }
        }
        if fstat(descriptor, &opened) != 0 { throw FileFault(path) }
        guard opened.st_mode & S_IFMT == S_IFREG else {
            throw FileFault(path, errno: EINVAL, words: "not a regular file")
        }
        // Who held the lock before may have put it in its place meanwhile.
        guard fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0, named.st_ino == opened.st_ino,
            named.st_dev == opened.st_dev
        else { return nil }
        if opened.st_nlink == 1 { return Int64(opened.st_size) }
        // It has another name somewhere, and what is there is not to be touched.
        if unlinkat(directory, name, 0) != 0 { throw FileFault(path) }
        return nil
    }

    var partPath: String { directory.path + "/" + part }

    // MARK: What is there

    func length() throws(FileFault) -> Int64 {
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw FileFault(partPath) }
        return Int64(status.st_size)
    }

    /// What is known of it; `nil` when there is nothing to go by. Throws what cannot be read just now: the part may be
    /// as good as ever.
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

    // MARK: Changing it

    /// Empties it, or sets it to a length, or cuts it back. On the disk when this returns, if `isDurable`: bytes of one
    /// version must never be found beside the metadata of another.
    func setLength(_ length: Int64, isDurable: Bool = false) throws(FileFault) {
        if ftruncate(descriptor, off_t(length)) != 0 { throw FileFault(partPath) }
        if isDurable && fsync(descriptor) != 0 { throw FileFault(partPath) }
    }

    /// Writes the metadata, in the place of older ones in one step.
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

    /// Writes down how far its segments are; what they have is on the disk before. Where that fails, what stands there
    /// is older, and still true.
    func note(_ content: DownloadMetadata) {
        do throws(FileFault) {
            if fdatasync(descriptor) != 0 { return }
            try write(content)
        } catch {}
    }

    /// Nothing is known of it any more. True to its name also after a crash: before other bytes are written.
    func removeMetadata() throws(FileFault) {
        var status = stat()
        // Mostly there is none, and to look does not hold up others in the directory.
        if fstatat(directory.descriptor, metadata, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT { return }
        if unlinkat(directory.descriptor, metadata, 0) == 0 {
            if fsync(directory.descriptor) != 0 { throw FileFault(directory.path) }
        } else if errno != ENOENT {
            throw FileFault(directory.path + "/" + metadata)
        }
    }

    /// Writes bytes that are in memory.
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

    // MARK: Its end

    /// Throws what could not be replaced: a directory, a device, a pipe. Whether it is a link to one is looked at, too.
    static func check(_ name: String, in directory: Int32, path: String) throws(FileFault) {
        var status = stat()
        if fstatat(directory, name, &status, 0) != 0 { return }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: throw FileFault(path + "/" + name, errno: EISDIR)
        default: throw FileFault(path + "/" + name, errno: EINVAL, words: "not a regular file")
        }
    }

    /// Brings the directory to the disk, together with others who want that of the same one.
    func syncDirectory(then end: @escaping @Sendable (FileFault?) -> Void) {
        DirectorySyncs.shared.sync(directory, then: end)
    }

    /// Throws it away.
    func remove() {
        unlinkat(directory.descriptor, metadata, 0)
        unlinkat(directory.descriptor, part, 0)
    }

    /// Lets others at it, from here on and not from when the last reference goes.
    func unlock() { _ = flock(descriptor, LOCK_UN) }

    /// The SHA-256 of all of an open file; `nil` when `goesOn` said no.
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
    /// The part is the file from here on: its bytes on the disk, under its name, which is on the disk when the
    /// directory is. What has the name gives way if it `replaces`; else the file gets the first that is free of
    /// `x.txt`, `x-1.txt` and so on. Returns the name.
    func place(as name: String, replaces: Bool, hasMetadata: Bool) throws(FileFault) -> String {
        if fsync(descriptor) != 0 { throw FileFault(partPath) }
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
        // What is left of the metadata after a crash here says nothing without a part.
        if hasMetadata { unlinkat(directory.descriptor, metadata, 0) }
        unlock()
        return taken
    }

    /// Gives the part a name, unless something has it: looked at and done in one step, whoever else is about it.
    private func take(_ name: String) throws(FileFault) -> Bool {
        let directory = directory.descriptor
        if linkat(directory, part, directory, name, 0) == 0 {
            // A part that is left after a crash here is known by its second name, and put away.
            unlinkat(directory, part, 0)
            return true
        }
        switch errno {
        case EEXIST: return false
        case EPERM, EOPNOTSUPP, EMLINK, ENOSYS: break
        default: throw FileFault(self.directory.path + "/" + name)
        }
        // Where a file has one name only, an empty one keeps the place.
        let empty = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        if empty < 0 && errno == EEXIST { return false }
        if empty >= 0 { close(empty) }
        if empty >= 0 && renameat(directory, part, directory, name) == 0 { return true }
        let fault = FileFault(self.directory.path + "/" + name)
        if empty >= 0 { unlinkat(directory, name, 0) }
        throw fault
    }

    /// So many files of one name are enough.
    private static let mostOfAName = 9_999
}

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

/// What the system says of a file that is to be written or read.
struct FileFault: Error, Sendable {
    var path: String
    var errno: Int32
    /// Ferry's own words, where the system's would mislead.
    var words: String?

    init(_ path: String, errno: Int32 = Glibc.errno, words: String? = nil) {
        self.path = path
        self.errno = errno
        self.words = words
    }

    var message: String { "\(path): \(words ?? String(cString: strerror(errno)))" }
}

extension RequestError {
    /// A file of a download could not be opened, written or put in its place.
    init(_ fault: FileFault, url: String, phase: RequestPhase) {
        var facts = RequestError(preparing: .fileIO, message: fault.message, url: url).facts
        facts.phase = phase
        facts.errno = fault.errno
        self.init(facts)
    }
}

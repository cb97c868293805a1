internal import CFerry
internal import Glibc

/// The threads of the core for work that may block on a file: a few for each device.
///
/// Dispatch's threads are not for that. Tasks run on them, so a network file system that hangs would stop every task of
/// the process.
package enum FileThreads {
    private final class Work: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `work` on a thread of the descriptor's device. Returns 0, or the system's error if there is no thread for
    /// it.
    package static func run(for descriptor: Int32, _ work: @escaping @Sendable () -> Void) -> Int32 {
        run(work) { ferry_work_on_file(descriptor, $0, $1) }
    }

    /// The same for a file that is not open yet: the device is that of its directory. If the system does not know it
    /// without asking a server, the files of one directory share threads, and a few directories may do so, too.
    /// `ETIMEDOUT` if hundreds of others wait there.
    package static func run(forFileAt path: String, _ work: @escaping @Sendable () -> Void) -> Int32 {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) }
        let directory = end.map { String(path[..<$0]) } ?? "."
        return run(work) { ferry_work_in(directory, UInt64(truncatingIfNeeded: directory.hashValue), $0, $1) }
    }

    /// Whether hundreds of jobs wait for the device of the file, and none has begun for a while.
    package static func hang(forFileAt path: String) -> Bool { ferry_file_hangs(path) != 0 }

    private static func run(
        _ work: @escaping @Sendable () -> Void,
        by start: (@convention(c) (UnsafeMutableRawPointer?) -> Void, UnsafeMutableRawPointer) -> Int32
    ) -> Int32 {
        let context = Unmanaged.passRetained(Work(work))
        let code = start({ Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().run() }, context.toOpaque())
        if code != 0 { context.release() }
        return code
    }
}

/// A regular file that is open for reading. It is closed when its last user is gone: a run, an attempt, or a read.
package final class ReadableFile: Sendable {
    package let descriptor: Int32
    /// The number of bytes when it was opened.
    package let size: UInt64
    /// Whether closing it never waits for a server, as that of a network file system may (FUSE sends a message and
    /// waits for the response).
    package let isLocal: Bool

    package enum Fault: Error {
        case system(errno: Int32)
        case notRegular
        /// It has content, although its size is 0, like the files below /proc.
        case noSize
        /// Hundreds of others wait for its device.
        case hangs
    }

    /// Opens a file, and waits for the file system. `isLocal` overrides what the file system is, for tests.
    package init(_ path: String, isLocal: Bool? = nil) throws(Fault) {
        // A C string would end at the NUL, and be the path of another file.
        if path.utf8.contains(0) { throw .system(errno: EINVAL) }
        if FileThreads.hang(forFileAt: path) { throw .hangs }
        var status = stat()
        // Non-blocking, because opening a FIFO without a writer would block the caller. A regular file that another
        // process has leased (fcntl(2), F_SETLEASE) needs a moment, as any open(2) of it.
        var opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if opened < 0, errno == EAGAIN, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            opened = open(path, O_RDONLY | O_CLOEXEC)
        }
        descriptor = opened
        if descriptor < 0 { throw .system(errno: errno) }
        let code = fstat(descriptor, &status)
        size = UInt64(clamping: status.st_size)
        self.isLocal = isLocal ?? (ferry_file_is_local(descriptor) != 0)
        if code != 0 { throw .system(errno: errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw .system(errno: EISDIR)
        default: throw .notRegular
        }
        if size == 0 { try checkIsEmpty() }
    }

    private func checkIsEmpty() throws(Fault) {
        var byte: UInt8 = 0
        let count = pread(descriptor, &byte, 1, 0)
        if count < 0 { throw .system(errno: errno) }
        if count > 0 { throw .noSize }
    }

    deinit {
        // Also called if `init` throws.
        guard descriptor >= 0 else { return }
        let descriptor = descriptor
        if !isLocal, FileThreads.run(for: descriptor, { close(descriptor) }) == 0 { return }
        close(descriptor)
    }
}

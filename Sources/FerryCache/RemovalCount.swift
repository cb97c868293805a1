internal import Glibc
import Synchronization

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

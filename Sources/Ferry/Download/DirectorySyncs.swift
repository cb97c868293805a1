import Dispatch
import Glibc
import Synchronization

/// Brings directories to the disk. Of those who want that of one directory at about the same time, one does it for all:
/// a sync that begins after a file got its name covers it, so that those who come while one is under way share the
/// next.
///
/// An error goes to each of those whose sync it was, and to no other.
final class DirectorySyncs: Sendable {
    typealias End = @Sendable (FileFault?) -> Void

    private struct Waiter {
        var directory: OpenDirectory
        var end: End
    }

    /// For all agents of the process.
    static let shared = DirectorySyncs { fsync($0) == 0 ? 0 : errno }

    /// Those who wait for the next sync of a directory, while one is under way.
    private let waiting = Mutex<[OpenDirectory.Identity: [Waiter]]>([:])
    /// Brings the directory of a descriptor to the disk; 0, or the error.
    private let sync: @Sendable (Int32) -> Int32

    init(_ sync: @escaping @Sendable (Int32) -> Int32) { self.sync = sync }

    /// Calls `end` when what was done in the directory before this call is on the disk: on this thread, which may have
    /// to wait for the disk, or on that of another who does it for both.
    func sync(_ directory: OpenDirectory, then end: @escaping End) {
        let waiter = Waiter(directory: directory, end: end)
        let isFirst = waiting.withLock { waiting in
            if waiting[directory.identity] == nil {
                waiting[directory.identity] = []
                return true
            }
            waiting[directory.identity]?.append(waiter)
            return false
        }
        guard isFirst else { return }
        var turn = [waiter]
        while !turn.isEmpty {
            serve(turn)
            turn = waiting.withLock { waiting in
                guard let next = waiting.removeValue(forKey: directory.identity), !next.isEmpty else { return [] }
                waiting[directory.identity] = []
                return next
            }
        }
    }

    /// By the descriptor that was opened first: an error is told once to each that was open when it came about
    /// (fsync(2)).
    private func serve(_ turn: [Waiter]) {
        guard let eldest = turn.min(by: { $0.directory.order < $1.directory.order })?.directory else { return }
        let error = sync(eldest.descriptor)
        // Some file systems bring directories to the disk by themselves, and refuse to be asked for it.
        let isDone = error == 0 || error == EINVAL
        for waiter in turn { waiter.end(isDone ? nil : FileFault(waiter.directory.path, errno: error)) }
    }
}

/// The thread on which one download waits for the disk, so that none of those does that carry tasks.
struct DiskQueue: Sendable {
    private let queue = DispatchQueue(label: "ferry.disk")

    /// Runs `body` there.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws(FileFault) -> Value) async throws(FileFault)
        -> Value
    {
        let result = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result { () throws(FileFault) in try body() }) }
        }
        return try result.get()
    }

    /// Likewise what ends later than it returns: `body` is given what is to be called then, once, on any thread.
    func run<Value: Sendable>(
        endingLater body: @escaping @Sendable (@escaping @Sendable (Result<Value, FileFault>) -> Void) -> Void
    ) async throws(FileFault) -> Value {
        let result = await withCheckedContinuation { continuation in
            queue.async { body { continuation.resume(returning: $0) } }
        }
        return try result.get()
    }

    /// Likewise what cannot fail.
    func settle(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Lets go of a part there, whenever the disk has time for it.
    func close(_ part: PartFile) { queue.async { withExtendedLifetime(part) {} } }
}

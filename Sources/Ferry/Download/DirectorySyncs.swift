import Dispatch
import FerrySynchronization
import Glibc

/// Syncs directories to the disk. If several callers need a sync of the same directory at about the same time, one sync
/// serves all of them: a sync that starts after a file got its name covers it, so callers that arrive during a sync
/// share the next one.
///
/// An error is reported to the callers of that sync, and to no others.
final class DirectorySyncs: Sendable {
    typealias End = @Sendable (FileFault?) -> Void

    private struct Waiter {
        var directory: OpenDirectory
        var end: End
    }

    /// For all agents of the process.
    static let shared = DirectorySyncs { fsync($0) == 0 ? 0 : errno }

    /// The callers that wait for the next sync of a directory, during an active one.
    private let waiting = Mutex<[OpenDirectory.Identity: [Waiter]]>([:])
    /// Syncs the directory of a descriptor; returns 0 or the errno.
    private let sync: @Sendable (Int32) -> Int32

    init(_ sync: @escaping @Sendable (Int32) -> Int32) { self.sync = sync }

    /// Calls `end` when the changes to the directory before this call are on disk. This happens on this thread, which
    /// may wait for the disk, or on the thread of another caller that serves both.
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

    /// Uses the descriptor that was opened first, because an error is reported once to each descriptor that was open
    /// when it occurred (fsync(2)).
    private func serve(_ turn: [Waiter]) {
        guard let eldest = turn.min(by: { $0.directory.order < $1.directory.order })?.directory else { return }
        let error = sync(eldest.descriptor)
        // Some file systems sync directories themselves, and refuse the request.
        let isDone = error == 0 || error == EINVAL
        for waiter in turn { waiter.end(isDone ? nil : FileFault(waiter.directory.path, errno: error)) }
    }
}

/// The thread on which one download waits for the disk, so that no thread of the task executor does. Its jobs run one
/// after the other, also those that nobody waits for any more.
struct DiskQueue: Sendable {
    private let queue = DispatchQueue(label: "ferry.disk")

    /// How long a run that has ended waits for the disk, like the core for a write.
    private static let patience = Duration.milliseconds(100)

    /// The jobs that no run waits for any more. Each blocks one of Dispatch's threads, of which there are hundreds, or
    /// keeps a directory open.
    private static let left = Atomic<Int>(0)
    static let mostLeft = 64

    /// Whether no further download may begin until a disk that hangs has finished some jobs.
    static var isExhausted: Bool { left.load(ordering: .relaxed) >= mostLeft }

    /// Throws if it is exhausted.
    static func check() throws(FileFault) {
        if isExhausted { throw FileFault("disk", errno: EBUSY, words: "it has not finished earlier downloads") }
    }

    /// Runs `body` there. It receives a closure to call with its result, once, on any thread. Returns `nil` if the run
    /// was ended, or its deadline has passed, and the disk is still not done 0.1 seconds later.
    func run<Value: Sendable>(
        for control: RunControl, until deadline: ContinuousClock.Instant?,
        _ body: @escaping @Sendable (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value? {
        let value = OneShot<Value?>()
        let job = Job()
        queue.async {
            body {
                value.finish($0)
                job.partEnds()
            }
            job.partEnds()
        }
        let found = await control.wait(for: value, until: deadline, patience: Self.patience)
        if found == nil { job.isLeft() }
        return found
    }

    /// It has two parts: its thread, and its result, which another thread may still be working on when this one is
    /// free. That is the sync of a directory, and until it ends the directory stays open.
    private final class Job: Sendable {
        private struct State {
            var parts = 2
            var isLeft = false
        }

        private let state = Mutex(State())

        func partEnds() {
            let wasLeft = state.withLock { state in
                state.parts -= 1
                return state.parts == 0 && state.isLeft
            }
            if wasLeft { DiskQueue.left.subtract(1, ordering: .relaxed) }
        }

        /// Nobody waits for it any more.
        func isLeft() {
            state.withLock { state in
                state.isLeft = state.parts > 0
                if state.isLeft { DiskQueue.left.add(1, ordering: .relaxed) }
            }
        }
    }

    /// Runs `body` there, and waits for it as long as it takes.
    func settle(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Runs `body` there, whenever the disk allows it.
    func start(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}

/// The partial files of this process that are locked although their runs have ended, because the disk had not finished,
/// and those that are being opened. A run that needs one of them waits for the lock; of any other locked partial file
/// it says that it is in use. A name stays here until its lock is released or another run has it, and after a write
/// that hung until another run or process has it.
final class LeftParts: Sendable {
    private struct Name: Hashable {
        var directory: OpenDirectory.Identity
        var part: String
    }

    /// For all agents of the process.
    static let shared = LeftParts()

    /// With the orders of the directories of the runs that have left it, each of which is its run's alone. A run that
    /// has locked a partial file that was renamed since, and one that has locked the new one, may do so at the same
    /// time.
    private let names = Mutex<[Name: Set<UInt64>]>([:])
    private static let most = 1_024
    /// The runs that wait for one of them. Each blocks a thread, as the jobs that are left behind do.
    private let waiting = Atomic<Int>(0)

    /// Returns `false` if too many wait already.
    func startsWaiting() -> Bool {
        if waiting.add(1, ordering: .relaxed).newValue <= DiskQueue.mostLeft { return true }
        waiting.subtract(1, ordering: .relaxed)
        return false
    }

    func stopsWaiting() { waiting.subtract(1, ordering: .relaxed) }

    /// Whether another process has locked this file, according to /proc/locks; `false` if that does not say.
    static func isElsewhere(_ descriptor: Int32) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        // As in makedev(3).
        let device = UInt64(status.st_dev)
        var (major, minor) = ((device >> 8) & 0xFFF, device & 0xFF)
        major |= (device >> 32) & ~0xFFF
        minor |= (device >> 12) & ~0xFF
        let place = Substring("\(hexadecimal(major)):\(hexadecimal(minor)):\(status.st_ino)")
        let process = Substring(String(getpid()))
        // 1: FLOCK  ADVISORY  WRITE 8755 fe:00:16220842 0 EOF
        return locks().split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count > 5 && words[1] == "FLOCK" && words[5] == place && words[4] != process
        }
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        (number < 16 ? "0" : "") + String(number, radix: 16)
    }

    private static func locks() -> String {
        let file = open("/proc/locks", O_RDONLY | O_CLOEXEC)
        if file < 0 { return "" }
        defer { close(file) }
        var bytes: [UInt8] = []
        var space = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 20 {
            let count = read(file, &space, space.count)
            if count <= 0 { break }
            bytes += space.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func contains(_ part: String, in directory: OpenDirectory) -> Bool {
        names.withLock { $0[Name(directory: directory.identity, part: part)] != nil }
    }

    func add(_ part: String, in directory: OpenDirectory) {
        names.withLock { names in
            if names.count >= Self.most { names = [:] }
            names[Name(directory: directory.identity, part: part), default: []].insert(directory.order)
        }
    }

    /// Whoever left it, this run has the lock now.
    func remove(_ part: String, in directory: OpenDirectory) {
        names.withLock { $0[Name(directory: directory.identity, part: part)] = nil }
    }

    /// The run of this directory has released the lock. Another may have left it since.
    func released(_ part: String, in directory: OpenDirectory) {
        let name = Name(directory: directory.identity, part: part)
        names.withLock { names in
            names[name]?.remove(directory.order)
            if names[name]?.isEmpty ?? false { names[name] = nil }
        }
    }
}

extension ContinuousClock.Instant? {
    /// Whether the deadline has passed; never without one.
    var isOver: Bool { map { $0 <= .now } ?? false }
}

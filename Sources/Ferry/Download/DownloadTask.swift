import FerrySynchronization
import FerryTransport

/// The handle of a download: observes, pauses and cancels it. Copies refer to the same run.
///
/// Releasing the handle does not end the run.
public struct DownloadTask: Sendable, Identifiable, Hashable {
    let run: CallbackRun
    let download: Download

    /// The number of the run, unique within its agent.
    public var id: UInt64 { run.number }

    /// The current state.
    public var state: RunState { run.state }

    /// The request's tag.
    public var tag: String? { run.tag }

    /// The current progress.
    public var progress: DownloadProgress { download.meter.progress }

    /// The progress as it changes, until the run ends.
    public var progressUpdates: DownloadProgressUpdates { download.meter.updates }

    /// Whether the download is paused.
    public var isPaused: Bool { download.isPaused }

    /// Stops reading until ``resume()``, and sends no further request. Bytes on their way may still arrive. The
    /// download keeps its connections and counts as active. ``Timeouts/idle`` does not count during a pause. The
    /// deadline does, and ``Timeouts/total`` for a transfer that is under way. Call it from any thread.
    public func pause() { download.pause() }

    /// Continues after ``pause()``. If the server has closed the connection, the rest is requested now. Call it from
    /// any thread.
    public func resume() { download.resume() }

    /// Cancels the run: its callback gets `cancelled`. The partial file stays if another run can resume from it. Call
    /// it from any thread. It has no effect on a run that has ended.
    public func cancel() { run.cancel() }

    /// Changes the priority in the queue. It has no effect on transfers that have started. Call it from any thread.
    public func setPriority(_ priority: RequestPriority) { run.setPriority(priority) }

    /// Whether both are handles of the same run.
    public static func == (left: DownloadTask, right: DownloadTask) -> Bool { left.run === right.run }

    /// Hashes the identity of the run.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(run)) }
}

extension Download {
    /// Stops reading the sockets.
    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.paused = state.pouring
            for run in state.pouring { run.core?.transport.pause(run.id) }
        }
    }

    /// Reads the sockets again, and requests what is missing.
    func resume() {
        let waiting = state.withLock { state in
            state.isPaused = false
            for run in state.pouring { run.core?.transport.resume(run.id) }
            defer { state.waiting = [] }
            return state.waiting
        }
        for goOn in waiting { goOn() }
    }

    /// Waits for the end of a pause, if there is one. Returns whether there was one; `nil` if the run was ended before
    /// its end, or the deadline has passed.
    func awaitResume(_ control: RunControl, until deadline: ContinuousClock.Instant?) async -> Bool? {
        var hasWaited = false
        while isPaused {
            hasWaited = true
            let hasResumed: Bool? = await control.wait(until: deadline) { goOn in
                let isPaused = state.withLock { state in
                    if state.isPaused { state.waiting.append { goOn(true) } }
                    return state.isPaused
                }
                if !isPaused { goOn(true) }
            }
            if hasResumed == nil { return nil }
        }
        return hasWaited
    }

    var isPaused: Bool { state.withLock { $0.isPaused } }

    /// Writes the body of a run to the partial file. Under the lock, so that a pause comes after it or is seen here.
    func pour(_ run: StreamRun, to sink: TransferSink) {
        state.withLock { state in
            state.pouring.append(run)
            run.core?.transport.write(run.id, to: sink)
            if state.isPaused {
                state.paused.append(run)
                run.core?.transport.pause(run.id)
            }
        }
    }

    /// The body of a run has ended. Returns whether it was paused in the meantime.
    func hasPoured(_ run: StreamRun) -> Bool {
        state.withLock { state in
            state.pouring.removeAll { $0 === run }
            let count = state.paused.count
            state.paused.removeAll { $0 === run }
            return state.paused.count < count
        }
    }

    /// Whether a paused run may have failed because of the pause, so that the rest can be requested.
    func excusesPause(_ failure: TransferFailure) -> Bool {
        switch failure.code {
        case .connectionReset, .incompleteBody, .http2Stream: state.withLock { $0.metadata.validator != nil }
        default: false
        }
    }
}

/// Receives progress and results of downloads. It is held weakly, and called on the callback queue.
public protocol DownloadDelegate: AnyObject, Sendable {
    /// The progress has changed. It is called at the start, then at most every 100 milliseconds, and at the end. The
    /// default implementation does nothing.
    func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress)

    /// The file is complete; called once for each run. The default implementation does nothing.
    func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile)

    /// The run was cancelled or has failed; called once for each run. The default implementation does nothing.
    func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError)
}

extension DownloadDelegate {
    /// Does nothing.
    public func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress) {}

    /// Does nothing.
    public func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile) {}

    /// Does nothing.
    public func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError) {}
}

/// The target of a download.
public enum DownloadTarget: Sendable, Hashable {
    /// A file. An existing file stays until the new one is complete, and is then replaced in one step. A symbolic link
    /// itself is replaced, not the file that it points to.
    case file(String)

    /// A directory. The name comes from the response's `Content-Disposition` (RFC 6266), or else from the last
    /// component of the URL. It is made safe: no path, no hidden file, no invisible characters, and at most 255 bytes.
    /// No existing file is replaced: if the name is taken, the file is called `name-1.txt` and so on; see
    /// ``DownloadedFile/path``.
    case directory(String)
}

/// The options of a download. Every option has a default.
public struct DownloadOptions: Sendable, Hashable {
    /// Whether to resume a partial download left by an earlier run. The default is `true`; with `false` the download
    /// restarts.
    public var resumes = true

    /// Whether a file that an earlier download has completed is kept if the server says that it has not changed. The
    /// request then has `If-None-Match` or `If-Modified-Since`, and on a 304 nothing is transferred
    /// (``DownloadedFile/isUnchanged``). The earlier download must have used this option, too: it saves the strong
    /// validator in an extended attribute of the file, if the file system supports that. A file that was modified since
    /// is downloaded again. The default is `false`.
    public var skipsUnchanged = false

    /// The required size of the file in bytes. With another size the run fails with `contentMismatch(length)`, as soon
    /// as the server tells it. The default is `nil`, any size.
    public var expectedLength: Int64?

    /// The required SHA-256 of the file, as 64 hexadecimal digits. With another digest the run fails with
    /// `contentMismatch(sha256)`, and the data is deleted. The whole file is read for this at the end. The default is
    /// `nil`, any digest.
    public var sha256: String?

    /// The number of segments that are downloaded at once, each over its own connection. The first
    /// ``minimumSegmentSize`` bytes are requested alone. If the response has exactly these bytes and a strong
    /// validator, the rest is requested in this many segments, or fewer. The default is 1.
    public var segments = 1

    /// The size of the first segment and the minimum size of the others in bytes, if there are several. The default is
    /// 1 MiB.
    public var minimumSegmentSize: Int64 = 1 << 20

    /// The average rate limit of all segments together in bytes per second. The default is `nil`, no limit.
    public var bytesPerSecond: Int?

    /// Creates options. Parameters that are left out have their defaults.
    public init(
        resumes: Bool = true, expectedLength: Int64? = nil, sha256: String? = nil, segments: Int = 1,
        bytesPerSecond: Int? = nil
    ) {
        self.resumes = resumes
        self.expectedLength = expectedLength
        self.sha256 = sha256
        self.segments = segments
        self.bytesPerSecond = bytesPerSecond
    }
}

/// A complete downloaded file on disk.
@dynamicMemberLookup
public struct DownloadedFile: Sendable {
    /// The path of the file; for a directory target with the chosen name.
    public let path: String

    /// The size in bytes.
    public let length: Int64

    /// The number of bytes from an earlier run; 0 if the download did not resume.
    public let resumedFrom: Int64

    /// Whether it is the file of an earlier download that the server has not changed, so that nothing was transferred;
    /// see ``DownloadOptions/skipsUnchanged``.
    public let isUnchanged: Bool

    /// The last response, with its head and metrics. Its body is empty here, because it is in the file.
    public let response: Response

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}

/// The task of a download for progress callbacks. It does not retain the run, which retains the callbacks.
final class DownloadHandle: Sendable {
    private struct State {
        weak var run: CallbackRun?
        weak var download: Download?
        /// Until it was handed out.
        var made: DownloadTask?
    }

    private let state = Mutex(State())

    func set(_ task: DownloadTask) {
        state.withLock { $0 = State(run: task.run, download: task.download, made: task) }
    }

    /// `nil` if the run no longer exists.
    var task: DownloadTask? {
        state.withLock { state in
            guard let run = state.run, let download = state.download else { return nil }
            return DownloadTask(run: run, download: download)
        }
    }

    /// Call it once.
    var made: DownloadTask {
        state.withLock { state in
            guard let made = state.made.take() else { preconditionFailure("no task was made") }
            return made
        }
    }
}

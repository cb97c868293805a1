import Synchronization

/// A download that was started: the handle to look at it, to hold it up and to end it. Copies name the same run.
///
/// Letting go of it does not end the run.
public struct DownloadTask: Sendable, Identifiable, Hashable {
    let run: CallbackRun
    let download: Download

    /// Unique in its agent.
    public var id: UInt64 { run.number }

    /// Where it stands.
    public var state: RunState { run.state }

    /// The request's tag.
    public var tag: String? { run.tag }

    /// How far it has come.
    public var progress: DownloadProgress { download.meter.progress }

    /// The progress as it changes, until the run ends.
    public var progressUpdates: DownloadProgressUpdates { download.meter.updates }

    /// Whether it was paused, and not resumed since.
    public var isPaused: Bool { download.isPaused }

    /// Stops reading until ``resume()``; what is under way already may still come. It keeps its connections and its
    /// place among the runs at work, and ``Timeouts/idle`` does not count meanwhile, ``Timeouts/total`` does. Any
    /// thread.
    public func pause() { download.pause() }

    /// Goes on after ``pause()``. Where the server has hung up meanwhile, the rest is asked for anew. Any thread.
    public func resume() { download.resume() }

    /// Ends it: the one callback comes, with `cancelled`. What was loaded stays for another run, where that can go on
    /// with it. Any thread; afterwards, and once the result is delivered, it is nothing.
    public func cancel() { run.cancel() }

    /// Changes its place among those that wait; what runs already is left alone. Any thread.
    public func setPriority(_ priority: RequestPriority) { run.setPriority(priority) }

    /// The same run.
    public static func == (left: DownloadTask, right: DownloadTask) -> Bool { left.run === right.run }

    /// By its run.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(run)) }
}

/// Receives what becomes of downloads; held weakly. Called on the callback queue.
public protocol DownloadDelegate: AnyObject, Sendable {
    /// It has come further: when it begins, then at most every 100 milliseconds, and at its end. The default does
    /// nothing.
    func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress)

    /// The file is there; once for each run. The default does nothing.
    func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile)

    /// The run was cancelled or failed; once for each run. The default does nothing.
    func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError)
}

extension DownloadDelegate {
    /// Nothing.
    public func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress) {}

    /// Nothing.
    public func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile) {}

    /// Nothing.
    public func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError) {}
}

/// Where a download goes.
public enum DownloadTarget: Sendable, Hashable {
    /// To this file. What is there already stays until the new one is complete, and is replaced by it in one step; a
    /// symbolic link is replaced itself, not the file that it points to.
    case file(String)

    /// Into this directory, by the name in the answer's `Content-Disposition` (RFC 6266), or else by the last component
    /// of the URL. Of either one name is made that is safe: no path, no hidden file, no character that cannot be seen,
    /// and no more than 255 bytes. Nothing is replaced: where something has the name already, the file is called
    /// `name-1.txt`, and so on; ``DownloadedFile/path`` says how.
    case directory(String)
}

/// How a file is downloaded; complete by default.
public struct DownloadOptions: Sendable, Hashable {
    /// Whether what an earlier run has left is gone on with. The default is `true`; with `false` it begins anew.
    public var resumes = true

    /// Whether a file that an earlier download has completed stays where it is when the server says that it has not
    /// changed: `If-None-Match` or `If-Modified-Since` goes along, and on a 304 nothing is loaded
    /// (``DownloadedFile/isUnchanged``). The earlier download must have had this option, too: it notes the strong
    /// validator in an extended attribute of the file, where the file system has those. A file that was changed since
    /// is loaded anew. The default is `false`.
    public var skipsUnchanged = false

    /// Bytes that the file must have; another length fails the run with `contentMismatch(.length)`, as soon as the
    /// server tells it. The default is `nil`, any.
    public var expectedLength: Int64?

    /// The SHA-256 that the file must have, as 64 hexadecimal digits in either case; another one fails the run with
    /// `contentMismatch(.sha256)`, and what was loaded is thrown away. All of the file is read for it at the end. The
    /// default is `nil`, any.
    public var sha256: String?

    /// How many parts of the file are loaded at once, each over a connection of its own. The first
    /// ``minimumSegmentSize`` bytes are asked for by themselves. If the server answers with them and with a strong
    /// validator, it is asked for the rest in so many parts, or fewer. The default is 1.
    public var segments = 1

    /// Bytes of the first segment, and those that the others have at least, if there is more than one of them. The
    /// default is 1 MiB.
    public var minimumSegmentSize: Int64 = 1 << 20

    /// Bytes a second, on average, of all segments together. The default is `nil`, as fast as can be.
    public var bytesPerSecond: Int?

    /// The defaults, and what is named here.
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

/// A file that was downloaded, whole and on the disk.
@dynamicMemberLookup
public struct DownloadedFile: Sendable {
    /// Where it is; of a directory target with the name that was chosen.
    public let path: String

    /// Its bytes.
    public let length: Int64

    /// How many of them were there from an earlier run; 0 when it began anew.
    public let resumedFrom: Int64

    /// Whether it is the file of an earlier download, as the server still has it, and nothing was loaded; see
    /// ``DownloadOptions/skipsUnchanged``.
    public let isUnchanged: Bool

    /// The last answer: its head and what was measured. Its body is the file, and is empty here.
    public let response: Response

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}

/// The task of a download for those who are told of its progress. It does not hold the run, which holds them.
final class DownloadHandle: Sendable {
    private struct State {
        weak var run: CallbackRun?
        weak var download: Download?
        /// Until it was given out.
        var made: DownloadTask?
    }

    private let state = Mutex(State())

    func set(_ task: DownloadTask) {
        state.withLock { $0 = State(run: task.run, download: task.download, made: task) }
    }

    /// `nil` when the run has gone.
    var task: DownloadTask? {
        state.withLock { state in
            guard let run = state.run, let download = state.download else { return nil }
            return DownloadTask(run: run, download: download)
        }
    }

    /// Once.
    var made: DownloadTask {
        state.withLock { state in
            guard let made = state.made.take() else { preconditionFailure("no task was made") }
            return made
        }
    }
}

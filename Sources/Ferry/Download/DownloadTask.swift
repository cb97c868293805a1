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

/// A run that was started: the handle to look at it and to end it. Copies name the same run.
///
/// Letting go of it does not end the run.
public struct RequestTask<Value: Sendable>: Sendable, Identifiable, Hashable {
    let run: any RunHandle

    /// Unique in its agent.
    public var id: UInt64 { run.number }

    /// Where it stands.
    public var state: RunState { run.state }

    /// The request's tag.
    public var tag: String? { run.tag }

    /// Times and bytes: of a run that has ended all of them, before that the wait in the queue and the time since its
    /// start. Of a batch or chain only `total` is measured; `processing` and `decoding` only where somebody observes.
    public var metrics: RequestMetrics { run.metrics }

    /// How far a batch or chain has come; `nil` of a request.
    public var progress: GroupProgress? { run.progress }

    /// Whether all that it brought came from a cache. False until that is known.
    public var isFromCache: Bool { run.isFromCache }

    /// Ends it: the one callback comes, with `cancelled`, on the same queue as any result. Any thread; afterwards, and
    /// once the result is delivered, it is nothing.
    public func cancel() { run.cancel() }

    /// Changes its place among those that wait; what runs already is left alone, and what follows it, behind a redirect
    /// or as a retry, has the new place. Any thread.
    public func setPriority(_ priority: RequestPriority) { run.setPriority(priority) }

    /// The same run.
    public static func == (left: RequestTask, right: RequestTask) -> Bool { left.run === right.run }

    /// By its run.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(run)) }
}

/// The task that carries a group's members, so that the group can be ended without ending the task it was sent from.
///
/// Sendable because all that is done with it is to cancel it, which any thread may. The runtime counts it as a
/// reference to the task, so it may outlive that: one that has ended is not changed by a cancel. This does not hold for
/// the task of an `async let`, whose memory is a piece of its parent's; so it is made in children of task groups only,
/// which have memory of their own.
struct RunningTask: @unchecked Sendable {
    private let task: UnsafeCurrentTask

    /// The task that runs now; `nil` outside of any.
    init?() {
        guard let task = withUnsafeCurrentTask(body: { $0 }) else { return nil }
        self.task = task
    }

    func cancel() { task.cancel() }
}

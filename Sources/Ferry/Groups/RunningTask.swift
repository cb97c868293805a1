/// The task that carries a group's members, so that the group can be ended without ending the task it was sent from.
///
/// Sendable because all that is done with it is to cancel it, which any thread may. It holds the task; one that has
/// ended is not changed by a cancel.
struct RunningTask: @unchecked Sendable {
    private let task: UnsafeCurrentTask

    /// The task that runs now; `nil` outside of any.
    init?() {
        guard let task = withUnsafeCurrentTask(body: { $0 }) else { return nil }
        self.task = task
    }

    func cancel() { task.cancel() }
}

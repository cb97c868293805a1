import Dispatch

/// Something that tells when it has gone, for what is let go some time after the last call.
final class Token: Sendable {
    private let end: AsyncStream<Void>.Continuation

    /// One whose stream ends with it.
    init(_ end: AsyncStream<Void>.Continuation) { self.end = end }

    deinit { end.finish() }
}

extension AsyncStream<Void> {
    /// Waits for its end.
    func finished() async { for await _ in self {} }
}

/// Runs jobs one after another, and tells when those so far have come to rest.
private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "test.executor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    func rest() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}

/// A task that has come to its first suspension, or to its end, when this returns.
func begun<Value: Sendable>(_ operation: @escaping @Sendable () async -> Value) async -> Task<Value, Never> {
    let executor = QueueExecutor()
    let task = Task(executorPreference: executor) { await operation() }
    await executor.rest()
    return task
}

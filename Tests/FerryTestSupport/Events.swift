import Dispatch

/// Lets time pass, and uses no processor meanwhile. It is for tests whose subject is time, where no event shows that it
/// has passed.
func elapse(_ time: Duration) async {
    let end = ContinuousClock.now + time
    while ContinuousClock.now < end, !Task.isCancelled { try? await Task.sleep(until: end, clock: .continuous) }
}

/// An object that reports when it is freed, for objects released some time after the last call.
final class Token: Sendable {
    private let end: AsyncStream<Void>.Continuation

    /// An object whose stream ends with it.
    init(_ end: AsyncStream<Void>.Continuation) { self.end = end }

    deinit { end.finish() }
}

extension AsyncStream<Void> {
    /// Waits for its end.
    func finished() async { for await _ in self {} }
}

/// Runs jobs one after another, and reports when those so far are idle.
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

/// A task that has reached its first suspension, or its end, when this returns.
func begun<Value: Sendable>(_ operation: @escaping @Sendable () async -> Value) async -> Task<Value, Never> {
    let executor = QueueExecutor()
    let task = Task(executorPreference: executor) { await operation() }
    await executor.rest()
    return task
}

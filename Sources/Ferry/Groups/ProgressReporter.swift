import Dispatch
import Synchronization

/// Tells how far a group has come. While a report is on its way no other follows, so a queue that is blocked gets one
/// and not many; the one after the last member is never left out.
final class ProgressReporter: Sendable {
    private let isReporting = Atomic<Bool>(false)
    private let queue: DispatchQueue
    private let tell: @Sendable (GroupProgress) -> Void

    init(on queue: DispatchQueue, _ tell: @escaping @Sendable (GroupProgress) -> Void) {
        self.queue = queue
        self.tell = tell
    }

    /// `progress` is asked when the report is made.
    func report(_ progress: @escaping @Sendable () -> GroupProgress) {
        if isReporting.exchange(true, ordering: .acquiringAndReleasing) { return }
        queue.async {
            self.isReporting.store(false, ordering: .sequentiallyConsistent)
            self.tell(progress())
        }
    }
}

extension AgentCore {
    /// Returns when all that was reported on the processing queue so far has been told.
    func drainReports() async {
        // It stands in the queue already.
        await withCheckedContinuation { continuation in processingQueue.async { continuation.resume() } }
    }
}

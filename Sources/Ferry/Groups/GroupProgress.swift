import Dispatch
import FerryTransport
import FoundationEssentials
import Synchronization

/// How far a batch or chain has come.
public struct GroupProgress: Sendable, Hashable {
    /// Members or steps that have ended, in whatever way.
    public let finished: Int
    /// All members; of a chain the steps as far as they are known: those that a step adds count from then on.
    public let total: Int

    /// From 0 to 1; 1 when there is nothing to do.
    public var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }

    /// So many of so many.
    public init(finished: Int, total: Int) {
        self.finished = finished
        self.total = total
    }
}

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

/// The queue on which a run that a task waits for tells how far it is. Each such run has one of its own: code of the
/// application's that blocks the processing queue, or the reports of another run, does not hold up this run's end.
///
/// All of them share the threads of a global queue, so their number does not grow with that of the runs.
final class ReportQueue: Sendable {
    let queue = DispatchQueue(label: "ferry.progress", target: .global())
    private let isClosed = Atomic<Bool>(false)

    /// How long a run that was ended early waits for a report that does not return.
    private static let patience = Duration.milliseconds(100)

    /// The same report, until the queue is closed.
    func gated<Progress>(_ report: @escaping @Sendable (Progress) -> Void) -> @Sendable (Progress) -> Void {
        { [self] progress in
            if !isClosed.load(ordering: .acquiring) { report(progress) }
        }
    }

    /// Returns when all that was reported so far has been told, and closes the queue. A run that was cancelled, shut
    /// down or timed out has to end in time: it does not wait for a report that blocks.
    func drain(endsInTime: Bool) async {
        let told = OneShot<Void>()
        queue.async { told.finish(()) }
        let clock =
            endsInTime
            ? Task {
                try await Task.sleep(for: Self.patience)
                told.finish(())
            } : nil
        await told.value()
        clock?.cancel()
        isClosed.store(true, ordering: .releasing)
    }
}

extension RequestError {
    /// The run was ended by its user, the agent, or a clock.
    var isEarlyEnd: Bool {
        switch code {
        case .cancelled, .shutdown, .timeout: true
        default: false
        }
    }
}

extension Answer {
    /// Likewise.
    var isEarlyEnd: Bool {
        switch self {
        case .refused(let error): return error.isEarlyEnd
        case .result(let result), .arrived(let result, _):
            guard let code = result.failure?.code else { return false }
            return code == .cancelled || code == .shutdown || code == .timeout
        case .unsent: return false
        }
    }
}

/// How much can be done at the same moment.
let processorCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)

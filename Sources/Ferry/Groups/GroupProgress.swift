import Dispatch
import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// The progress of a batch or chain.
public struct GroupProgress: Sendable, Hashable {
    /// The number of members or steps that have ended, successfully or not.
    public let finished: Int
    /// The number of all members. For a chain, the number of steps known so far; it grows when a step adds steps.
    public let total: Int

    /// The fraction from 0 to 1; 1 if there is nothing to do.
    public var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }

    /// Creates a progress value.
    public init(finished: Int, total: Int) {
        self.finished = finished
        self.total = total
    }
}

/// Reports the progress of a group. While a report is queued no other is added, so a blocked queue gets one report and
/// not many. The report after the last member is always made.
final class ProgressReporter: Sendable {
    private let isReporting = Atomic<Bool>(false)
    private let queue: DispatchQueue
    private let tell: Mutex<(@Sendable (GroupProgress) -> Void)?>

    init(on queue: DispatchQueue, _ tell: @escaping @Sendable (GroupProgress) -> Void) {
        self.queue = queue
        self.tell = Mutex(tell)
    }

    /// `progress` is read when the report is made.
    func report(_ progress: @escaping @Sendable () -> GroupProgress) {
        if isReporting.exchange(true, ordering: .acquiringAndReleasing) { return }
        // Now, because on a concurrent queue the closure may be released before the report is made.
        guard let tell = tell.withLock({ $0 }) else { return }
        queue.async {
            self.isReporting.store(false, ordering: .sequentiallyConsistent)
            tell(progress())
        }
    }

    /// The group has ended, and its last report is queued or made: releases the closure, which may hold the task of the
    /// group.
    func forget() {
        var told: (@Sendable (GroupProgress) -> Void)?
        tell.withLock { swap(&told, &$0) }
    }
}

/// The queue on which an awaited run reports its progress. Each such run has its own, so that application code that
/// blocks the processing queue or the reports of another run does not delay the end of this run.
///
/// All of them use the threads of a global queue, so the number of threads does not grow with the number of runs.
final class ReportQueue: Sendable {
    let queue = DispatchQueue(label: "ferry.progress", target: .global())
    private let isClosed = Atomic<Bool>(false)

    /// How long a run that was ended early waits for a report that does not return.
    private static let patience = Duration.milliseconds(100)

    /// The same report, but without effect after the queue was closed.
    func gated<Progress>(_ report: @escaping @Sendable (Progress) -> Void) -> @Sendable (Progress) -> Void {
        { [self] progress in
            if !isClosed.load(ordering: .acquiring) { report(progress) }
        }
    }

    /// Returns when all queued reports were made, and closes the queue. A run that was cancelled, shut down or timed
    /// out has to end in time, so it does not wait for a report that blocks.
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
    /// Whether the run was ended by its user, the agent, or a clock.
    var isEarlyEnd: Bool {
        switch code {
        case .cancelled, .shutdown, .timeout: true
        default: false
        }
    }
}

extension Answer {
    /// Whether the run was ended by its user, the agent, or a clock.
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

/// The number of processors.
let processorCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)

/// A position in a batch or chain.
public struct GroupPlace: Sendable, Hashable, CustomStringConvertible {
    /// Whether it is in a batch or in a chain.
    public let kind: RunInfo.Kind
    /// The index of the member of a batch in the given order, or of the step of a chain in the order of execution, from
    /// 0.
    public let index: Int
    /// The name of a step: the one passed to ``ChainRequest/then(_:_:)``, or the type of its request. `nil` in a batch.
    public let name: String?

    /// Creates a position.
    public init(kind: RunInfo.Kind, index: Int, name: String? = nil) {
        self.kind = kind
        self.index = index
        self.name = name
    }

    /// A description like `step 2 (Pay)` or `member 3`.
    public var description: String {
        kind == .chain ? "step \(index)" + (name.map { " (\($0))" } ?? "") : "member \(index)"
    }
}

extension RequestError {
    /// The positions in nested batches and chains, outermost first. Empty for a single request, and if a group was
    /// cancelled as a whole.
    public var groupPath: [GroupPlace] { facts.groupPath }

    /// The index of the failed member of the batch or step of the chain; `nil` for a single request.
    public var failedIndex: Int? { groupPath.first?.index }

    /// The name of the failed step of the chain; `nil` for a batch or a single request.
    public var failedStep: String? { groupPath.first?.name }

    /// The values of the other members of a fail-fast batch that had succeeded, by index. With nested batches, those of
    /// the outermost.
    public var finished: [Int: any Sendable] { facts.finished?() ?? [:] }

    /// The same error with the position in the group that it failed.
    func at(_ place: GroupPlace, finished: (@Sendable () -> [Int: any Sendable])? = nil) -> RequestError {
        var facts = facts
        facts.groupPath.insert(place, at: 0)
        if let finished { facts.finished = finished }
        return RequestError(facts)
    }
}

extension RequestError {
    /// The error of a group that was ended from outside, or of a member that was to start in it.
    init(_ end: GroupRun.End, url: String = "") {
        let failure =
            switch end {
            case .cancelled: TransferFailure(.cancelled)
            case .shutdown: TransferFailure(.shutdown)
            case .deadline: TransferFailure(.timeout, .timeoutDeadline)
            }
        self.init(failure, url: url)
    }

    /// The error of a member in a group that was ended from outside: the reason is that of the group.
    func ended(by end: GroupRun.End) -> RequestError {
        switch end {
        case .cancelled: cancelled.ofWhole
        case .shutdown: code == .shutdown ? ofWhole : RequestError(.shutdown).along(self).ofWhole
        case .deadline: code == .timeout(.deadline) ? self : RequestError(.deadline).along(self)
        }
    }

    /// Without a position, because the group was ended as a whole.
    var ofWhole: RequestError {
        if facts.groupPath.isEmpty { return self }
        var facts = facts
        (facts.groupPath, facts.finished) = ([], nil)
        return RequestError(facts)
    }

    private func along(_ other: RequestError) -> RequestError {
        var facts = facts
        facts.groupPath = other.groupPath
        facts.mayHaveBeenProcessed = other.mayHaveBeenProcessed
        return RequestError(facts)
    }
}

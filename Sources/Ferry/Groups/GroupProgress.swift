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

/// Where in a batch or chain something happened.
public struct GroupPlace: Sendable, Hashable, CustomStringConvertible {
    /// A batch or a chain.
    public let kind: RunInfo.Kind
    /// The member of a batch, in the order given, or the step of a chain, in the order they ran; from 0.
    public let index: Int
    /// A step's name: the one given to ``ChainRequest/then(_:_:)``, else the type of its request. `nil` of a batch.
    public let name: String?

    /// A place of its parts.
    public init(kind: RunInfo.Kind, index: Int, name: String? = nil) {
        self.kind = kind
        self.index = index
        self.name = name
    }

    /// Like `step 2 (Pay)` or `member 3`.
    public var description: String {
        kind == .chain ? "step \(index)" + (name.map { " (\($0))" } ?? "") : "member \(index)"
    }
}

extension RequestError {
    /// Where in a batch or chain it happened, outermost first; empty for a request by itself, and when a group was
    /// cancelled as a whole.
    public var groupPath: [GroupPlace] { facts.groupPath }

    /// The member of the batch, or the step of the chain, that failed; `nil` for a request by itself.
    public var failedIndex: Int? { groupPath.first?.index }

    /// The name of the step of the chain that failed; `nil` for a batch, or a request by itself.
    public var failedStep: String? { groupPath.first?.name }

    /// What the other members of a fail-fast batch had brought when one failed, by their index. Of batches inside one
    /// another the outermost's.
    public var finished: [Int: any Sendable] { facts.finished?() ?? [:] }

    /// The same, as what failed a group.
    func at(_ place: GroupPlace, finished: (@Sendable () -> [Int: any Sendable])? = nil) -> RequestError {
        var facts = facts
        facts.groupPath.insert(place, at: 0)
        if let finished { facts.finished = finished }
        return RequestError(facts)
    }
}

extension RequestError {
    /// What a group that was ended from outside ends with, or a member that was to begin in it.
    init(_ end: GroupRun.End, url: String = "") {
        let failure =
            switch end {
            case .cancelled: TransferFailure(.cancelled)
            case .shutdown: TransferFailure(.shutdown)
            case .deadline: TransferFailure(.timeout, .timeoutDeadline)
            }
        self.init(failure, url: url)
    }

    /// The failure of a group that was ended from outside: how it went remains true, why is the group's.
    func ended(by end: GroupRun.End) -> RequestError {
        switch end {
        case .cancelled: cancelled.ofWhole
        case .shutdown: code == .shutdown ? ofWhole : RequestError(.shutdown).along(self).ofWhole
        case .deadline: code == .timeout(.deadline) ? self : RequestError(.deadline).along(self)
        }
    }

    /// Not of one member: the group was ended as a whole.
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

import Dispatch
import Synchronization

/// How far a download has come.
public struct DownloadProgress: Sendable, Hashable {
    /// Bytes of the file that are on the disk, those of earlier runs included.
    public let received: Int64

    /// Bytes that it will have; `nil` while, or as, that is not known.
    public let total: Int64?

    /// Bytes a second over the last seconds; 0 before anything is known.
    public let rate: Double

    /// How many bytes were there when the run began.
    public let resumedFrom: Int64

    /// Whether another run could go on from here if this one ended now.
    public let isResumable: Bool

    /// From 0 to 1; `nil` while it is not known how much there is.
    public var fraction: Double? {
        total.map { $0 == 0 ? 1 : min(Double(received) / Double($0), 1) }
    }

    /// The time that is left if it goes on like this; `nil` while that cannot be said.
    public var remaining: Duration? {
        guard let total, rate > 0 else { return nil }
        return .seconds(Double(max(total - received, 0)) / rate)
    }

    /// Progress of its parts, for tests of what shows it.
    public init(received: Int64, total: Int64?, rate: Double, resumedFrom: Int64, isResumable: Bool) {
        self.received = received
        self.total = total
        self.rate = rate
        self.resumedFrom = resumedFrom
        self.isResumable = isResumable
    }
}

/// The progress of one download as it changes: never more often than every 100 milliseconds, and the last one always.
/// A reader that is slower gets the latest. It ends with the run.
public struct DownloadProgressUpdates: AsyncSequence, Sendable {
    /// How far it has come.
    public typealias Element = DownloadProgress
    /// None.
    public typealias Failure = Never

    private let stream: AsyncStream<DownloadProgress>

    init(_ stream: AsyncStream<DownloadProgress>) { self.stream = stream }

    /// Begins with what comes next.
    public func makeAsyncIterator() -> AsyncStream<DownloadProgress>.Iterator { stream.makeAsyncIterator() }
}

/// Counts what of one download is on the disk, and reports it now and then.
///
/// A report says what is so when it runs: while one is on its way no other follows, so a queue that is blocked gets one
/// and not many. The one at the end is never left out.
final class DownloadMeter: Sendable {
    typealias Report = @Sendable (DownloadProgress) -> Void

    fileprivate struct State {
        var received: Int64 = 0
        var total: Int64?
        var resumedFrom: Int64 = 0
        var isResumable = false
        var rate = RateEstimate()
        /// When the last report was given out, in nanoseconds.
        var reported: UInt64 = 0
        var isReporting = false
        /// A report will be made when the next one may be.
        var isTimed = false
        var hasEnded = false
        var listeners: [AsyncStream<DownloadProgress>.Continuation] = []
    }

    /// A report that is to be made now.
    private struct Due {
        var progress: DownloadProgress
        var listeners: [AsyncStream<DownloadProgress>.Continuation]
        /// No other one is on its way to the queue.
        var isFirst: Bool
    }

    /// Nanoseconds between two reports.
    static let interval: UInt64 = 100_000_000

    private let state = Mutex(State())
    private let queue: DispatchQueue
    private let report: Report?

    init(on queue: DispatchQueue, _ report: Report? = nil) {
        self.queue = queue
        self.report = report
    }

    var progress: DownloadProgress { state.withLock { $0.progress(Self.now) } }

    /// What changes from here on. A run that has ended gives its last state.
    var updates: DownloadProgressUpdates {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadProgress.self, bufferingPolicy: .bufferingNewest(1))
        let last = state.withLock { state -> DownloadProgress? in
            if state.hasEnded { return state.progress(Self.now) }
            state.listeners.append(continuation)
            return nil
        }
        if let last {
            continuation.yield(last)
            continuation.finish()
        }
        return DownloadProgressUpdates(stream)
    }

    /// So much is there as it begins, or begins anew; of that so much is from earlier runs.
    func begin(at count: Int64, resumedFrom: Int64, total: Int64?, isResumable: Bool, now: UInt64 = DownloadMeter.now) {
        tell(now) { state in
            state.received = count
            state.resumedFrom = resumedFrom
            state.total = total
            state.isResumable = isResumable
            state.rate.begin(count, now: now)
            return true
        }
    }

    /// So much more is there.
    func add(_ count: Int64, now: UInt64 = DownloadMeter.now) {
        var wait: UInt64?
        tell(now) { state in
            state.received += count
            state.rate.count(state.received, now: now)
            let due = state.reported + Self.interval
            if now < due && !state.isTimed && (report != nil || !state.listeners.isEmpty) {
                state.isTimed = true
                wait = due - now
            }
            return now >= due
        }
        // What comes now may be the last for long.
        guard let wait else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(wait))) { [weak self] in
            self?.tell(Self.now) { state in
                state.isTimed = false
                return !state.hasEnded && Self.now >= state.reported + Self.interval
            }
        }
    }

    /// No count follows. Nothing is told of a run that never came to a file.
    func end(now: UInt64 = DownloadMeter.now) {
        var listeners: [AsyncStream<DownloadProgress>.Continuation] = []
        tell(now) { state in
            if state.hasEnded { return false }
            state.hasEnded = true
            swap(&listeners, &state.listeners)
            return state.reported > 0
        } then: { progress in
            for listener in listeners { listener.yield(progress) }
        }
        for listener in listeners { listener.finish() }
    }

    private func tell(
        _ now: UInt64, _ change: (inout State) -> Bool, then also: (DownloadProgress) -> Void = { _ in }
    ) {
        let due = state.withLock { state -> Due? in
            guard change(&state) else { return nil }
            state.reported = now
            defer { state.isReporting = report != nil }
            return Due(progress: state.progress(now), listeners: state.listeners, isFirst: !state.isReporting)
        }
        guard let due else { return }
        for listener in due.listeners { listener.yield(due.progress) }
        also(due.progress)
        guard due.isFirst, let report else { return }
        queue.async {
            let progress = self.state.withLock { state in
                state.isReporting = false
                return state.progress(Self.now)
            }
            report(progress)
        }
    }

    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension DownloadMeter.State {
    fileprivate func progress(_ now: UInt64) -> DownloadProgress {
        DownloadProgress(
            received: received, total: total, rate: rate.rate(received, now: now), resumedFrom: resumedFrom,
            isResumable: isResumable)
    }
}

/// Bytes a second over the last seconds, from counts that come now and then.
struct RateEstimate: Sendable {
    private struct Sample {
        var time: UInt64
        var count: Int64
    }

    private var samples: [Sample] = []

    /// Nanoseconds that are looked back over, and between two counts that are kept.
    static let window: UInt64 = 5_000_000_000
    static let spacing: UInt64 = 100_000_000

    /// Begins anew: what was counted before was no progress.
    mutating func begin(_ count: Int64, now: UInt64) { samples = [Sample(time: now, count: count)] }

    mutating func count(_ count: Int64, now: UInt64) {
        guard let last = samples.last else { return begin(count, now: now) }
        if now < last.time + Self.spacing { return }
        samples.append(Sample(time: now, count: count))
        while samples.count > 2, samples[1].time + Self.window <= now { samples.removeFirst() }
    }

    /// With so many bytes at this moment.
    func rate(_ count: Int64, now: UInt64) -> Double {
        guard let first = samples.first, now > first.time else { return 0 }
        return Double(max(count - first.count, 0)) * 1e9 / Double(now - first.time)
    }
}

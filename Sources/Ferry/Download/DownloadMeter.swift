import Dispatch
import FerrySynchronization

/// The progress of a download.
public struct DownloadProgress: Sendable, Hashable {
    /// The number of bytes of the file on disk, including those of earlier runs.
    public let received: Int64

    /// The size of the file in bytes; `nil` if it is unknown.
    public let total: Int64?

    /// The rate of the last seconds in bytes per second; 0 before it is known.
    public let rate: Double

    /// The number of bytes that were there when the run started.
    public let resumedFrom: Int64

    /// Whether another run could resume from here if this one ended now.
    public let isResumable: Bool

    /// The fraction from 0 to 1; `nil` if the size is unknown.
    public var fraction: Double? {
        total.map { $0 == 0 ? 1 : min(Double(received) / Double($0), 1) }
    }

    /// The estimated remaining time; `nil` if it is unknown.
    public var remaining: Duration? {
        guard let total, rate > 0 else { return nil }
        // A rate near 0 would make it longer than a duration can be.
        return .seconds(min(Double(max(total - received, 0)) / rate, 1e15))
    }

    /// Creates a progress value, to test code that shows it.
    public init(received: Int64, total: Int64?, rate: Double, resumedFrom: Int64, isResumable: Bool) {
        self.received = received
        self.total = total
        self.rate = rate
        self.resumedFrom = resumedFrom
        self.isResumable = isResumable
    }
}

/// The progress of one download as it changes: at most every 100 milliseconds, and always the last one. A slower reader
/// gets the latest value. The sequence ends with the run.
public struct DownloadProgressUpdates: AsyncSequence, Sendable {
    /// The progress.
    public typealias Element = DownloadProgress
    /// The sequence does not throw.
    public typealias Failure = Never

    private let stream: AsyncStream<DownloadProgress>

    init(_ stream: AsyncStream<DownloadProgress>) { self.stream = stream }

    /// Starts with the next change.
    public func makeAsyncIterator() -> AsyncStream<DownloadProgress>.Iterator { stream.makeAsyncIterator() }
}

/// Counts the bytes of one download on disk, and reports them.
///
/// A report has the state at the time when it runs. While one is queued no other is added, so a blocked queue gets one
/// report and not many. The report at the end is always made.
final class DownloadMeter: Sendable {
    typealias Report = @Sendable (DownloadProgress) -> Void

    fileprivate struct State {
        var received: Int64 = 0
        var total: Int64?
        var resumedFrom: Int64 = 0
        var isResumable = false
        var rate = RateEstimate()
        /// When the last report was queued, in nanoseconds.
        var reported: UInt64 = 0
        var isReporting = false
        /// A timer will make a report when the next one is permitted.
        var isTimed = false
        /// When the run ended, in nanoseconds: its rate does not change after that.
        var ended: UInt64?
        var listeners = Listeners<DownloadProgress>()
        var report: Report?
    }

    /// A report to make now.
    private struct Due {
        var progress: DownloadProgress
        var listeners: Listeners<DownloadProgress>
        /// `nil` if another report is queued.
        var report: Report?
    }

    /// The minimum time between two reports, in nanoseconds.
    static let interval: UInt64 = 100_000_000

    private let state: Mutex<State>
    private let queue: DispatchQueue

    init(on queue: DispatchQueue, _ report: Report? = nil) {
        self.queue = queue
        state = Mutex(State(report: report))
    }

    /// The run has ended, and its last report was made: releases the closure, which may hold the task of the run.
    func forget() {
        var report: Report?
        state.withLock { swap(&report, &$0.report) }
    }

    var progress: DownloadProgress { state.withLock { $0.progress(Self.now) } }

    /// The number of sequences that are read.
    var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// The changes from here on. If the run has ended, only its last state.
    var updates: DownloadProgressUpdates {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadProgress.self, bufferingPolicy: .bufferingNewest(1))
        let (last, number) = state.withLock { state -> (DownloadProgress?, UInt64) in
            state.ended == nil ? (nil, state.listeners.add(continuation)) : (state.progress(Self.now), 0)
        }
        if let last {
            continuation.yield(last)
            continuation.finish()
        } else {
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.remove(number) }
            }
        }
        return DownloadProgressUpdates(stream)
    }

    /// Starts or restarts the count with this many bytes, of which some are from earlier runs.
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

    /// Adds bytes.
    func add(_ count: Int64, now: UInt64 = DownloadMeter.now) {
        var wait: UInt64?
        tell(now) { state in
            state.received += count
            state.rate.count(state.received, now: now)
            let due = state.reported + Self.interval
            if now < due && !state.isTimed && (state.report != nil || state.listeners.count > 0) {
                state.isTimed = true
                wait = due - now
            }
            return now >= due
        }
        // This change may be the last for a long time.
        guard let wait else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(wait))) { [weak self] in
            self?.tell(Self.now) { state in
                state.isTimed = false
                return state.ended == nil && Self.now >= state.reported + Self.interval
            }
        }
    }

    /// The count is final. Nothing is reported for a run that never reached a file.
    func end(now: UInt64 = DownloadMeter.now) {
        var listeners = Listeners<DownloadProgress>()
        tell(now) { state in
            if state.ended != nil { return false }
            state.ended = now
            swap(&listeners, &state.listeners)
            return state.reported > 0
        } then: { progress in
            listeners.send(progress)
        }
        listeners.finish()
    }

    private func tell(
        _ now: UInt64, _ change: (inout State) -> Bool, then also: (DownloadProgress) -> Void = { _ in }
    ) {
        let due = state.withLock { state -> Due? in
            guard change(&state) else { return nil }
            state.reported = now
            let report = state.isReporting ? nil : state.report
            state.isReporting = state.report != nil
            return Due(progress: state.progress(now), listeners: state.listeners, report: report)
        }
        guard let due else { return }
        due.listeners.send(due.progress)
        also(due.progress)
        guard let report = due.report else { return }
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
            received: received, total: total, rate: rate.rate(received, now: ended ?? now), resumedFrom: resumedFrom,
            isResumable: isResumable)
    }
}

/// Estimates the rate of the last seconds in bytes per second, from irregular counts.
struct RateEstimate: Sendable {
    private struct Sample {
        var time: UInt64
        var count: Int64
    }

    private var samples: [Sample] = []

    /// The time to look back, and the minimum time between two samples, in nanoseconds.
    static let window: UInt64 = 5_000_000_000
    static let spacing: UInt64 = 100_000_000

    /// Restarts: earlier counts were not progress.
    mutating func begin(_ count: Int64, now: UInt64) { samples = [Sample(time: now, count: count)] }

    mutating func count(_ count: Int64, now: UInt64) {
        guard let last = samples.last else { return begin(count, now: now) }
        if now < last.time + Self.spacing { return }
        samples.append(Sample(time: now, count: count))
        while samples.count > 2, samples[1].time + Self.window <= now { samples.removeFirst() }
    }

    /// The rate with this count at this time.
    func rate(_ count: Int64, now: UInt64) -> Double {
        guard let first = samples.first, now > first.time else { return 0 }
        return Double(max(count - first.count, 0)) * 1e9 / Double(now - first.time)
    }
}

package import FerryTransport
import Glibc
import Synchronization

/// Follows every run of an agent in a distributed trace: an observer that an agent asks for a span when a run begins.
/// The first of the configuration's observers that is one gets all runs.
package protocol RunTracer: RequestObserver {
    /// [caller's thread] The span of a run that begins. `parent` is the context of the work at hand.
    func begin(_ run: RunInfo, below parent: TraceContext?) -> RunSpan

    /// [callback queue, or the caller's task for `await`] The run is over, before its callbacks.
    func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics)
}

/// The span of a run, and below it those of its attempts.
package final class RunSpan: Sendable {
    /// One transfer of a run. A redirect, a retry and an answered challenge begin another.
    package struct Attempt: Sendable {
        /// The number of its span.
        package let id: UInt64
        /// Nanoseconds since 1970.
        package let start: UInt64
        package let method: String
        /// As it was sent, secrets included.
        package let url: String
        /// When its answer had come, up to the head of a streamed one; 0 while it has not.
        package var end: UInt64 = 0
        /// 0 without an answer.
        package var status = 0
        /// Why there was none.
        package var failure: TransferFailure?
        package var peer = ""
        package var peerPort = 0
        /// 10, 11, 20; 0 without an answer.
        package var httpVersion = 0

        /// Without secrets.
        package var shownURL: String { Redaction.url(url) }
        /// `h`, `h:8443`; empty where the URL has no host.
        package var authority: String { HostKey.authority(of: url) }
        /// The failure's code, of which there are few.
        package var failureLabel: String? { failure.map { RequestError($0, url: url).code.label } }
    }

    /// The run's own: attempts are children of it.
    package let context: TraceContext
    /// The span that the run belongs to; 0 when it begins a trace.
    package let parent: UInt64
    /// Nanoseconds since 1970; 0 when nothing is recorded.
    package let start: UInt64
    package let isRecorded: Bool
    private let recorded = Mutex<[Attempt]>([])
    /// A run that is sent again without end is not recorded without end.
    private static let most = 128

    /// A span that is recorded, or only tells the servers that it is not.
    package init(_ context: TraceContext, below parent: UInt64, isRecorded: Bool) {
        self.context = context
        self.parent = parent
        start = isRecorded ? wallClock() : 0
        self.isRecorded = isRecorded
    }

    /// Those that were begun, in their order.
    package var attempts: [Attempt] { recorded.withLock { $0 } }

    /// The context of an attempt that is about to leave.
    func begin(_ transfer: borrowing TransferRequest) -> TraceContext {
        let child = context.child()
        if isRecorded {
            let attempt = Attempt(
                id: child.spanID, start: wallClock(), method: transfer.method, url: transfer.url)
            recorded.withLock { if $0.count < Self.most { $0.append(attempt) } }
        }
        return child
    }

    /// The answer of the attempt that was begun last.
    func received(_ result: TransferResult) {
        guard isRecorded else { return }
        let now = wallClock()
        recorded.withLock { attempts in
            guard let last = attempts.indices.last, attempts[last].end == 0 else { return }
            // It may have waited for this thread since: what the transfer took is known better.
            attempts[last].end = min(max(now, attempts[last].start), attempts[last].start + result.metrics.total * 1000)
            attempts[last].status = result.status
            attempts[last].failure = result.failure
            attempts[last].peer = result.peer
            attempts[last].peerPort = result.peerPort
            attempts[last].httpVersion = result.httpVersion
        }
    }
}

/// Nanoseconds since 1970.
package func wallClock() -> UInt64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}

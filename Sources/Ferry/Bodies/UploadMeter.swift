import Dispatch
import FerrySynchronization
import FerryTransport

/// Counts the sent bytes of one run's body, and reports them.
///
/// A report has the state at the time when it runs. While one is queued no other is added, so a blocked queue gets one
/// report and not many. The report after the last byte is always made.
final class UploadMeter: Sendable {
    typealias Report = @Sendable (UploadProgress) -> Void

    fileprivate struct State {
        var sent: UInt64 = 0
        var total: UInt64?
        var hasBegun = false
        /// The time when the last report was queued, in nanoseconds.
        var reported: UInt64 = 0
        var isReporting = false
        var report: Report?
    }

    /// The minimum time between two reports, in nanoseconds.
    static let interval: UInt64 = 50_000_000

    private let state: Mutex<State>
    private let queue: DispatchQueue

    /// Without a report it only counts.
    init(on queue: DispatchQueue, _ report: Report? = nil) {
        self.queue = queue
        state = Mutex(State(report: report))
    }

    var progress: UploadProgress {
        state.withLock { UploadProgress(bytesSent: $0.sent, bytesToSend: $0.total) }
    }

    /// Starts an attempt. An attempt without a body, after a redirect that dropped it, keeps the counts.
    func begin(total: UInt64?, hasBody: Bool = true, now: UInt64 = UploadMeter.now) {
        tell { state in
            if state.hasBegun && !hasBody { return false }
            state.hasBegun = true
            state.sent = 0
            state.total = total
            return state.isDue(now, always: true)
        }
    }

    /// [event loop] Counts the bytes that were read from the body.
    func count(_ fill: TransferFill, now: UInt64 = UploadMeter.now) {
        switch fill {
        case .bytes(let count): add(UInt64(count), now)
        case .piece(let piece): add(piece.length, now)
        case .end:
            tell { state in
                state.total = state.sent
                return state.isDue(now, always: true)
            }
        case .later, .failed: break
        }
    }

    private func add(_ count: UInt64, _ now: UInt64) {
        tell { state in
            state.sent += count
            return state.isDue(now, always: state.sent == state.total)
        }
    }

    /// [event loop] Ends the attempt; this many bytes of a body in memory were sent.
    func end(sent: UInt64, now: UInt64 = UploadMeter.now) {
        tell { state in
            guard state.sent == 0, sent > 0, sent == state.total else { return false }
            state.sent = sent
            return state.isDue(now, always: true)
        }
    }

    /// The run has ended, and its last report was made: releases the closure, which may hold the task of the run.
    func forget() {
        var report: Report?
        state.withLock { swap(&report, &$0.report) }
    }

    private func tell(_ change: (inout State) -> Bool) {
        let report = state.withLock { state in change(&state) ? state.report : nil }
        guard let report else { return }
        queue.async {
            let progress = self.state.withLock { state in
                state.isReporting = false
                return UploadProgress(bytesSent: state.sent, bytesToSend: state.total)
            }
            report(progress)
        }
    }

    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension UploadMeter.State {
    /// Whether to make a report now; then it counts as queued.
    fileprivate mutating func isDue(_ now: UInt64, always: Bool) -> Bool {
        if isReporting || (!always && now - reported < UploadMeter.interval) { return false }
        reported = now
        isReporting = true
        return true
    }
}

/// The upload progress: how much of a request's body has been handed to the network.
///
/// It restarts when a request is sent again after a redirect or by a retry.
public struct UploadProgress: Sendable, Hashable {
    /// The number of bytes handed over. A body in memory is counted when all of it has been sent.
    public let bytesSent: UInt64
    /// The total number of bytes; `nil` if it is unknown.
    public let bytesToSend: UInt64?

    /// The fraction from 0 to 1; `nil` if the total is unknown.
    public var fraction: Double? {
        bytesToSend.map { $0 == 0 ? 1 : Double(bytesSent) / Double($0) }
    }

    init(bytesSent: UInt64, bytesToSend: UInt64?) {
        self.bytesSent = bytesSent
        self.bytesToSend = bytesToSend
    }
}

import Dispatch
import FerryTransport
import Synchronization

/// Counts what leaves of one run's body, and reports it now and then.
///
/// A report says what is so when it runs: while one is on its way no other follows, so a queue that is blocked gets one
/// and not many. The one after the last byte is never left out.
final class UploadMeter: Sendable {
    typealias Report = @Sendable (UploadProgress) -> Void

    fileprivate struct State {
        var sent: UInt64 = 0
        var total: UInt64?
        var hasBegun = false
        /// When the last report was given to the queue, in nanoseconds.
        var reported: UInt64 = 0
        var isReporting = false
    }

    /// Nanoseconds between two reports.
    static let interval: UInt64 = 50_000_000

    private let state = Mutex(State())
    private let report: Report?
    private let queue: DispatchQueue

    /// Without a report it only counts.
    init(on queue: DispatchQueue, _ report: Report? = nil) {
        self.queue = queue
        self.report = report
    }

    var progress: UploadProgress {
        state.withLock { UploadProgress(bytesSent: $0.sent, bytesToSend: $0.total) }
    }

    /// An attempt begins. One without a body, behind a redirect that took it off, leaves what was counted as it is.
    func begin(total: UInt64?, hasBody: Bool = true, now: UInt64 = UploadMeter.now) {
        tell { state in
            if state.hasBegun && !hasBody { return false }
            state.hasBegun = true
            state.sent = 0
            state.total = total
            return state.isDue(now, always: true)
        }
    }

    /// [loop's thread] So much was pulled.
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

    /// [loop's thread] The attempt has ended; a body that lay in memory has left as far as this.
    func end(sent: UInt64, now: UInt64 = UploadMeter.now) {
        tell { state in
            guard state.sent == 0, sent > 0, sent == state.total else { return false }
            state.sent = sent
            return state.isDue(now, always: true)
        }
    }

    private func tell(_ change: (inout State) -> Bool) {
        let isDue = state.withLock { state in change(&state) }
        guard isDue, let report else { return }
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
    /// Whether a report is to be made now; then it is on its way.
    fileprivate mutating func isDue(_ now: UInt64, always: Bool) -> Bool {
        if isReporting || (!always && now - reported < UploadMeter.interval) { return false }
        reported = now
        isReporting = true
        return true
    }
}

/// How much of a request's body has been handed to the network.
///
/// When a request is sent again, after a redirect or by a retry, it begins anew.
public struct UploadProgress: Sendable, Hashable {
    /// Bytes handed over. A body that lies in memory counts when all of it has left.
    public let bytesSent: UInt64
    /// Bytes there are to send; `nil` while that is not known.
    public let bytesToSend: UInt64?

    /// From 0 to 1; `nil` while it is not known how much there is.
    public var fraction: Double? {
        bytesToSend.map { $0 == 0 ? 1 : Double(bytesSent) / Double($0) }
    }

    init(bytesSent: UInt64, bytesToSend: UInt64?) {
        self.bytesSent = bytesSent
        self.bytesToSend = bytesToSend
    }
}

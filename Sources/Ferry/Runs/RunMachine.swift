/// The state of a run.
public enum RunState: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// In the queue.
    case waiting
    /// Active.
    case running
    /// The response has arrived, and is being validated and decoded.
    case finishing
    /// Succeeded.
    case finished
    /// Cancelled.
    case cancelled
    /// Failed.
    case failed

    /// The name.
    public var description: String { rawValue }

    /// Whether the run has ended. The result of a cancelled run may still be on its way.
    public var isEnd: Bool { self == .finished || self == .cancelled || self == .failed }
}

/// The state machine of a run: it takes events and returns actions.
///
///     waiting ──▶ running ◀─▶ finishing ──▶ finished
///        └───────────┴────────────┴──▶ cancelled, failed
struct RunMachine: Sendable {
    private(set) var state = RunState.waiting
    private(set) var isDelivered = false

    enum CancelAction: Equatable {
        /// The run has already ended, or is being cancelled.
        case none
        /// The transport must end the transfer.
        case stopTransfer
        /// The response has already arrived: the result on its way becomes `cancelled`.
        case replaceResult
    }

    enum DeliverAction: Equatable {
        /// Deliver the result.
        case result
        /// The run was cancelled in the meantime: make the result `cancelled`, and deliver that.
        case cancelled
        /// The result was already delivered.
        case none
    }

    /// The transfer has left the queue.
    mutating func started() {
        if state == .waiting { state = .running }
    }

    /// The transport has a result.
    mutating func answered() {
        if state == .waiting || state == .running { state = .finishing }
    }

    /// The run continues by itself, because it was not sent yet or the response was not the last. Returns `false` if it
    /// was cancelled.
    mutating func wentOn() -> Bool {
        if state == .waiting || state == .finishing { state = .running }
        return state == .running
    }

    /// The run is cancelled.
    mutating func cancel() -> CancelAction {
        switch state {
        case .waiting, .running:
            state = .cancelled
            return .stopTransfer
        case .finishing:
            state = .cancelled
            return .replaceResult
        case .finished, .cancelled, .failed:
            return .none
        }
    }

    /// The result is about to be delivered, and cannot be changed from here on.
    mutating func deliver(_ end: RunState) -> DeliverAction {
        precondition(end.isEnd, "a run ends finished, cancelled or failed")
        if isDelivered { return .none }
        if state == .cancelled && end != .cancelled { return .cancelled }
        isDelivered = true
        state = end
        return .result
    }
}

/// Where a run stands.
public enum RunState: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// In the queue.
    case waiting
    /// At work.
    case running
    /// Answered; it is validated and decoded.
    case finishing
    /// Ended well.
    case finished
    /// Cancelled.
    case cancelled
    /// Ended by a fault.
    case failed

    /// Its name.
    public var description: String { rawValue }

    /// Whether it has ended. The result of a cancelled run may still be on its way.
    public var isEnd: Bool { self == .finished || self == .cancelled || self == .failed }
}

/// The life of a run: events in, actions out, nothing else.
///
///     waiting ──▶ running ◀─▶ finishing ──▶ finished
///        └───────────┴────────────┴──▶ cancelled, failed
struct RunMachine: Sendable {
    private(set) var state = RunState.waiting
    private(set) var isDelivered = false

    enum CancelAction: Equatable {
        /// It had ended already, or is being cancelled.
        case none
        /// The transport must end the transfer.
        case stopTransfer
        /// It was answered already: the result on its way becomes `cancelled`.
        case replaceResult
    }

    enum DeliverAction: Equatable {
        /// Hand over the result.
        case result
        /// It was cancelled meanwhile: make the result `cancelled`, and come again with that.
        case cancelled
        /// It was handed over before.
        case none
    }

    /// The transfer has left the queue.
    mutating func started() {
        if state == .waiting { state = .running }
    }

    /// The transport has answered.
    mutating func answered() {
        if state == .waiting || state == .running { state = .finishing }
    }

    /// It goes its own way from here: it was not sent yet, or the answer was not the last. False when nobody wants it
    /// any more.
    mutating func wentOn() -> Bool {
        if state == .waiting || state == .finishing { state = .running }
        return state == .running
    }

    /// Somebody does not want it any more.
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

    /// The result is about to be handed over: from here on it cannot be changed.
    mutating func deliver(_ end: RunState) -> DeliverAction {
        precondition(end.isEnd, "a run ends finished, cancelled or failed")
        if isDelivered { return .none }
        if state == .cancelled && end != .cancelled { return .cancelled }
        isDelivered = true
        state = end
        return .result
    }
}

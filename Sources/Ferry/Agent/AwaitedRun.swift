import Synchronization

/// What a run's answer goes to that no task waits for by itself.
struct AnswerReader: Sendable {
    let object: any AnswerReading
    let place: Int
}

protocol AnswerReading: AnyObject, Sendable {
    /// The one answer of the run of this place. Any thread.
    func answered(_ place: Int, _ answer: Answer)
}

/// A run that a task waits for, or a reader of many. It is handed over before the task waits, so its answer may come
/// first.
///
/// Sendable like every ``Run``: what it adds is constant or behind its lock.
final class AwaitedRun: Run, @unchecked Sendable {
    private enum Slot {
        case empty
        case reader(AnswerReader)
        case waiter(UnsafeContinuation<Answer, Never>)
        case answer(Answer)
        case done
    }

    private let slot: Mutex<Slot>
    /// `nil` when it begins with a plain transfer.
    let journey: Journey?
    /// What it began with; `nil` of a part of a journey.
    let servers: Servers?
    /// Its request as it was then; `nil` where it cannot be sent, too.
    let snapshot: RequestSnapshot?

    init(
        url: String, tag: String?, watch: RunWatch? = nil, journey: Journey? = nil, servers: Servers? = nil,
        snapshot: RequestSnapshot? = nil, reader: AnswerReader? = nil
    ) {
        slot = Mutex(reader.map { .reader($0) } ?? .empty)
        self.journey = journey
        self.servers = servers
        self.snapshot = snapshot
        super.init(url: url, tag: tag, watch: watch, goesByQueues: false)
    }

    /// A part of a journey has that, and a member of a group its group.
    override var mayGoOn: Bool { servers != nil && group == nil }

    /// Waits for its answer. To end it early is the caller's to see to.
    nonisolated(nonsending) func answer() async -> Answer {
        #if FERRY_TSAN
        defer { observe() }
        #endif
        return await withUnsafeContinuation { wait(by: $0) }
    }

    private func wait(by continuation: UnsafeContinuation<Answer, Never>) {
        let answer: Answer? = slot.withLock { slot in
            if case .answer(let answer) = slot {
                slot = .done
                return answer
            }
            slot = .waiter(continuation)
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }

    override func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        #if FERRY_TSAN
        publish()
        #endif
        let before = slot.withLock { slot in
            let before = slot
            if case .empty = before { slot = .answer(answer) } else { slot = .done }
            return before
        }
        switch before {
        case .empty: break
        case .waiter(let waiter): waiter.resume(returning: answer)
        case .reader(let reader): reader.object.answered(reader.place, answer)
        case .answer, .done: preconditionFailure("a run was answered twice")
        }
    }
}

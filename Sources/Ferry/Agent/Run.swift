import FerryTransport
import Synchronization

/// The record of one run: what the table holds under its id, one object for each.
///
/// Sendable because of three rules: `transfer` is touched only by the thread that starts the run, before it is handed
/// over; subclasses set their waiter before that, too, and read it when the table gives the run out, which it does
/// once; all else is atomic, constant, or behind a lock.
class Run: @unchecked Sendable {
    /// 0 before it is handed over, 1 when it was cancelled before that, afterwards its id.
    private let link = Atomic<UInt64>(0)
    private var transfer: TransferRequest?
    let url: String
    let tag: String?
    /// Whether its answer goes by queues to a callback.
    let goesByQueues: Bool

    private static let cancelledBefore: UInt64 = 1

    init(_ transfer: consuming TransferRequest?, url: String, tag: String?, goesByQueues: Bool = false) {
        self.goesByQueues = goesByQueues
        self.url = url
        self.tag = tag
        self.transfer = consume transfer
    }

    /// Its id in the transport; 0 before it was handed over.
    final var id: TransferID {
        let id = link.load(ordering: .acquiring)
        return id == Self.cancelledBefore ? 0 : id
    }

    #if FERRY_TSAN
    /// The sanitizer does not see that a continuation that is resumed before it is awaited orders the two threads.
    private let published = Atomic<Int>(0)
    final func publish() { published.store(1, ordering: .releasing) }
    final func observe() { _ = published.load(ordering: .acquiring) }
    #endif

    /// Gives the transfer out, once.
    final func takeTransfer() -> TransferRequest? { transfer.take() }

    final var wasCancelledBefore: Bool { link.load(ordering: .acquiring) == Self.cancelledBefore }

    /// It has been handed over. False when it was cancelled meanwhile: then the cancel has yet to be passed on.
    final func handedOver(as id: TransferID) -> Bool {
        link.compareExchange(expected: 0, desired: id, ordering: .acquiringAndReleasing).exchanged
    }

    /// Notes a cancel; returns the id that the transport must be told, if it knows it already.
    final func noteCancel() -> TransferID? {
        let (exchanged, id) = link.compareExchange(
            expected: 0, desired: Self.cancelledBefore, ordering: .acquiringAndReleasing)
        return exchanged || id == Self.cancelledBefore ? nil : id
    }

    /// The transfer has left the queue.
    func started() {}

    /// The one answer. A run that goes on by queues adds itself to `turn`, whose members go on together.
    func answer(_ answer: Answer, into turn: inout [CallbackRun]) {}

    /// Asked to end by the agent (`cancelAll`); returns the id that the transport must be told.
    func cancelled() -> TransferID? { noteCancel() }
}

/// What became of a transfer: a result, or a refusal of our own.
enum Answer: Sendable {
    case result(TransferResult)
    case refused(RequestError)
}

/// A run that a task waits for.
final class AwaitedRun: Run, @unchecked Sendable {
    /// Set before the run is handed over, taken when the table gives it out.
    private var waiter: UnsafeContinuation<Answer, Never>?

    func wait(by continuation: UnsafeContinuation<Answer, Never>) { waiter = continuation }

    override func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        guard let waiter = waiter.take() else { preconditionFailure("a run was answered twice") }
        #if FERRY_TSAN
        publish()
        #endif
        waiter.resume(returning: answer)
    }
}

import FerryTransport
import Synchronization

/// The record of one run: what the table holds under its id, one object for each.
///
/// Sendable because all of it is atomic or constant; what subclasses add is behind a lock, or says why not.
class Run: @unchecked Sendable {
    /// 0 before it is handed over, 1 when it was cancelled before that, afterwards its id.
    private let link = Atomic<UInt64>(0)
    let url: String
    let tag: String?
    /// `nil` when nobody observes it.
    let watch: RunWatch?
    /// Gives out the body, where it is pulled. Set, like the meter, before the transport knows of the run.
    final var source: (any BodySource)?
    /// `nil` when nothing counts its body.
    final var meter: UploadMeter?
    /// The batch or chain it is a member of. Set, like the next, before the transport knows of the run.
    final var group: GroupRun?
    /// Whether its place among those that wait is the group's to say.
    final var inheritsPriority = false
    /// Whether its answer goes by queues to a callback.
    let goesByQueues: Bool

    /// The number of the last cancel of all runs when it came into the table: those that follow mean it. A task that
    /// goes on with it asks by this whether there were any, as they may not have found it any more. `nil` before. Set
    /// under the lock of the core, and before the transport knows of the run.
    final var lastCancel: UInt32?

    /// It has an answer that may not be its last, and its task has yet to look at it. Set under the lock of the core,
    /// before the run is answered, and from then on touched by that task only.
    final var isUndecided = false

    private static let cancelledBefore: UInt64 = 1

    init(url: String, tag: String?, watch: RunWatch?, goesByQueues: Bool) {
        self.goesByQueues = goesByQueues
        self.url = url
        self.tag = tag
        self.watch = watch
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

    /// It has been handed over. False when it was cancelled meanwhile: then the cancel has yet to be passed on.
    final func handedOver(as id: TransferID) -> Bool {
        link.compareExchange(expected: 0, desired: id, ordering: .acquiringAndReleasing).exchanged
    }

    /// Whether its place in the table is kept, now that it is answered: until it is delivered by a queue. From here on
    /// its id is this one, also where its answer came before it was handed over.
    final func keepsPlace(as id: TransferID) -> Bool { goesByQueues && (self.id == id || handedOver(as: id)) }

    /// Notes a cancel; returns the id that the transport must be told, if it knows it already.
    final func noteCancel() -> TransferID? {
        let (exchanged, id) = link.compareExchange(
            expected: 0, desired: Self.cancelledBefore, ordering: .acquiringAndReleasing)
        return exchanged || id == Self.cancelledBefore ? nil : id
    }

    /// Whether its task may go on behind an answer, with nothing else in the agent to show for it meanwhile.
    var mayGoOn: Bool { false }

    /// The transfer has left the queue.
    func started() {}

    /// The head of an answer that is streamed.
    func received(head: TransferResult) {}

    /// A piece of its body, which lives until this returns.
    func received(chunk: UnsafeRawBufferPointer) -> TransferFlow { .proceed }

    /// So many bytes of its body are in its file.
    func written(_ count: UInt64) {}

    /// The one answer. A run that goes on by queues adds itself to `turn`, whose members go on together.
    func answer(_ answer: Answer, into turn: inout [CallbackRun]) {}

    /// Asked to end by the agent (`cancelAll`); returns the id that the transport must be told.
    func cancelled() -> TransferID? { noteCancel() }
}

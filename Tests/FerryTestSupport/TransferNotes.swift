import Ferry
import FerrySynchronization
import FerryTransport

/// Notes the transfers that an agent submits, in order.
final class TransferNotes: Sendable {
    struct Note: Sendable {
        let ring: PriorityRing
        /// What is left of the time until the deadline, in milliseconds; 0 = it has none.
        let deadline: UInt32
    }

    private let notes = Mutex<[Note]>([])
    var all: [Note] { notes.withLock { $0 } }

    fileprivate func add(_ note: Note) { notes.withLock { $0.append(note) } }

    /// A transport that submits to this one, and notes what it submits.
    func noting(_ base: any Transporting) -> any Transporting { NotedTransport(base, self) }
}

private final class NotedTransport: Transporting {
    private let base: any Transporting
    private let notes: TransferNotes

    init(_ base: any Transporting, _ notes: TransferNotes) {
        self.base = base
        self.notes = notes
    }

    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        notes.add(.init(ring: request.ring, deadline: request.timeouts.deadline))
        try base.submit(request, id: id)
    }

    func attach(_ receiver: any TransferReceiver) { base.attach(receiver) }
    func cancel(_ id: TransferID) { base.cancel(id) }
    func resume(_ id: TransferID) { base.resume(id) }
    func resumeSending(_ id: TransferID) { base.resumeSending(id) }
    func pause(_ id: TransferID) { base.pause(id) }
    func write(_ id: TransferID, to sink: TransferSink) { base.write(id, to: sink) }
    func setRing(_ ring: PriorityRing, of id: TransferID) { base.setRing(ring, of: id) }
    func shutdown() { base.shutdown() }
    func nextExecutor() -> (any TaskExecutor)? { base.nextExecutor() }
    var statistics: TransportStatistics { base.statistics }
}

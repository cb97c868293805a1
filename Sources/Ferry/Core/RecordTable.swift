import FerryTransport

/// The active runs by id: a slab whose slots have a generation, so that no id is used twice and a late id finds
/// nothing.
struct RecordTable<Record> {
    private struct Place {
        var generation: UInt32 = 1
        /// For a free slot, the index of the next free slot + 1, or 0. For a used one, whether its run has its result.
        var next: UInt32 = 0
        var record: Record?
    }

    private var places: [Place] = []
    /// The index of the first free slot + 1, or 0.
    private var free: UInt32 = 0
    /// The number of runs without a result.
    private(set) var count = 0

    /// The id, from the top: 8 bits for the event loop, 24 for the generation, 32 for the index. It is never below 2³².
    mutating func insert(_ record: Record, loop: UInt8 = 0) -> TransferID {
        count += 1
        let index: Int
        if free == 0 {
            index = places.count
            places.append(Place(record: record))
        } else {
            index = Int(free - 1)
            free = places[index].next
            places[index].next = 0
            places[index].record = record
        }
        return TransferID(loop) << 56 | TransferID(places[index].generation) << 32 | TransferID(index)
    }

    /// Inserts the record of a run that already has its result.
    mutating func insertAnswered(_ record: Record) -> TransferID {
        let id = insert(record)
        places[Int(id & 0xFFFF_FFFF)].next = Self.answered
        count -= 1
        return id
    }

    /// Returns the record of a run that now has its result, once. The run no longer counts. It loses its slot, or keeps
    /// it until it is removed.
    mutating func answer(_ id: TransferID, keepsPlace: (Record) -> Bool) -> Record? {
        guard let index = index(of: id), places[index].next != Self.answered,
            let record = places[index].record.take()
        else { return nil }
        count -= 1
        if keepsPlace(record) {
            places[index].record = record
            places[index].next = Self.answered
        } else {
            release(index)
        }
        return record
    }

    private static var lastGeneration: UInt32 { 0xFF_FFFF }
    private static var answered: UInt32 { .max }

    private static func generation(of id: TransferID) -> UInt32 {
        UInt32(truncatingIfNeeded: id >> 32) & lastGeneration
    }

    /// Removes a record, with or without a result.
    @discardableResult
    mutating func remove(_ id: TransferID) -> Record? {
        guard let index = index(of: id), let record = places[index].record.take() else { return nil }
        if places[index].next != Self.answered { count -= 1 }
        release(index)
        return record
    }

    private func index(of id: TransferID) -> Int? {
        let index = Int(id & 0xFFFF_FFFF)
        return index < places.count && places[index].generation == Self.generation(of: id) ? index : nil
    }

    private mutating func release(_ index: Int) {
        places[index].generation = places[index].generation == Self.lastGeneration ? 1 : places[index].generation + 1
        places[index].next = free
        free = UInt32(index + 1)
    }

    subscript(id: TransferID) -> Record? { index(of: id).flatMap { places[$0].record } }

    /// All records, including those of runs with a result. O(slots).
    var all: [Record] { places.compactMap(\.record) }
}

/// A log of `cancelAll` calls, for runs that had a response at the time but whose task was about to continue, so that
/// the call could not find them.
struct CancelLog {
    private var recent: [(number: UInt32, tag: String?)] = []
    /// The number of the last call; 0 if there was none.
    private(set) var number: UInt32 = 0

    /// There are never more calls in the time that a task takes to continue.
    private static let most = 64
    /// This number is never reached.
    private static let last = UInt32.max

    /// Notes that all runs, or those with a tag, were cancelled.
    mutating func note(_ tag: String?) {
        if number < Self.last { number += 1 }
        if recent.count == Self.most { recent.removeFirst() }
        recent.append((number, tag))
    }

    /// Whether a run with this tag was cancelled after the call with that number.
    func covers(_ tag: String?, since earlier: UInt32) -> Bool {
        recent.contains { $0.number > earlier && ($0.tag == nil || $0.tag == tag) }
    }
}

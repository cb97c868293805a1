import FerryTransport

/// The runs in flight by their id: a slab, each place with a generation, so that an id is never used twice and a late
/// one finds nothing.
struct RecordTable<Record> {
    private struct Place {
        var generation: UInt32 = 1
        /// Of a free place the next free one + 1, 0 = none. Of a taken one whether its run is answered.
        var next: UInt32 = 0
        var record: Record?
    }

    private var places: [Place] = []
    /// The first free place + 1; 0 = none.
    private var free: UInt32 = 0
    /// Those that are not answered.
    private(set) var count = 0

    /// From the top: 8 bits for the loop that is to carry it, 24 for the generation, 32 for the index; never below 2³².
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

    /// Takes in the record of a run that is answered already.
    mutating func insertAnswered(_ record: Record) -> TransferID {
        let id = insert(record)
        places[Int(id & 0xFFFF_FFFF)].next = Self.answered
        count -= 1
        return id
    }

    /// The record of a run that is answered now, once. It counts no more; its place it loses, or keeps until it is
    /// removed.
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

    /// Lets go of a record, answered or not.
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

    /// All records, those of answered runs too. O(places).
    var all: [Record] { places.compactMap(\.record) }
}

/// When all runs were cancelled, or all of a tag: for those that were answered then, or before the cancel came to them,
/// and that a task was about to go on with, where nobody finds them.
struct CancelLog {
    private var recent: [(number: UInt32, tag: String?)] = []
    /// Of the last one; 0 = there was none.
    private(set) var number: UInt32 = 0

    /// More of them nobody makes in the moment that a task takes to go on.
    private static let most = 64
    /// So many will not come.
    private static let last = UInt32.max

    /// All runs are cancelled, or those of a tag.
    mutating func note(_ tag: String?) {
        if number < Self.last { number += 1 }
        if recent.count == Self.most { recent.removeFirst() }
        recent.append((number, tag))
    }

    /// Whether a run of this tag was meant after the one of that number.
    func covers(_ tag: String?, since earlier: UInt32) -> Bool {
        recent.contains { $0.number > earlier && ($0.tag == nil || $0.tag == tag) }
    }
}

import FerryTransport

/// The runs in flight by their id: a slab, each place with a generation, so that an id is never used twice and a late
/// one finds nothing.
struct RecordTable<Record> {
    private struct Place {
        var generation: UInt32 = 1
        var next: UInt32 = 0
        var record: Record?
    }

    private var places: [Place] = []
    /// The first free place + 1; 0 = none.
    private var free: UInt32 = 0
    private(set) var count = 0

    /// Generation above, index below; never below 2³².
    mutating func insert(_ record: Record) -> TransferID {
        count += 1
        if free == 0 {
            places.append(Place(record: record))
            return 1 << 32 | TransferID(places.count - 1)
        }
        let index = Int(free - 1)
        free = places[index].next
        places[index].record = record
        return TransferID(places[index].generation) << 32 | TransferID(index)
    }

    mutating func remove(_ id: TransferID) -> Record? {
        let index = Int(id & 0xFFFF_FFFF)
        guard index < places.count, places[index].generation == UInt32(id >> 32),
            let record = places[index].record.take()
        else { return nil }
        places[index].generation = places[index].generation == .max ? 1 : places[index].generation + 1
        places[index].next = free
        free = UInt32(index + 1)
        count -= 1
        return record
    }

    subscript(id: TransferID) -> Record? {
        let index = Int(id & 0xFFFF_FFFF)
        guard index < places.count, places[index].generation == UInt32(id >> 32) else { return nil }
        return places[index].record
    }

    /// All records. O(places).
    var all: [Record] { places.compactMap(\.record) }
}

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
            places[index].record = record
        }
        return TransferID(loop) << 56 | TransferID(places[index].generation) << 32 | TransferID(index)
    }

    private static var lastGeneration: UInt32 { 0xFF_FFFF }

    private static func generation(of id: TransferID) -> UInt32 {
        UInt32(truncatingIfNeeded: id >> 32) & lastGeneration
    }

    mutating func remove(_ id: TransferID) -> Record? {
        let index = Int(id & 0xFFFF_FFFF)
        guard index < places.count, places[index].generation == Self.generation(of: id),
            let record = places[index].record.take()
        else { return nil }
        places[index].generation = places[index].generation == Self.lastGeneration ? 1 : places[index].generation + 1
        places[index].next = free
        free = UInt32(index + 1)
        count -= 1
        return record
    }

    subscript(id: TransferID) -> Record? {
        let index = Int(id & 0xFFFF_FFFF)
        guard index < places.count, places[index].generation == Self.generation(of: id) else { return nil }
        return places[index].record
    }

    /// All records. O(places).
    var all: [Record] { places.compactMap(\.record) }
}

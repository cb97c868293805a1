internal import Ferry
internal import FerryMeasurement

/// How long each part of the exchanges took; a part counts only where it happened.
struct BenchPhases: Sendable {
    enum Phase: String, CaseIterable, Sendable {
        /// From the start until it left Ferry's queue.
        case queue
        /// Looking up the name.
        case name
        case connect
        case tls
        /// From the request's sending to the first byte of the answer.
        case firstByte = "first_byte"
        /// From there to the last, decompression included.
        case body
        /// Checking against the schema.
        case decode
    }

    private(set) var times = [Histogram](repeating: Histogram(), count: Phase.allCases.count)

    subscript(phase: Phase) -> Histogram { times[Self.place(phase)] }

    mutating func record(_ phase: Phase, _ time: Duration) {
        times[Self.place(phase)].record(UInt64(max(0, time.microseconds)) * 1000)
    }

    /// All but the decoding, which is not the exchange's.
    mutating func add(_ metrics: RequestMetrics) {
        record(.queue, metrics.queue)
        var known = metrics.queue
        for (phase, time) in [
            (Phase.name, metrics.nameLookup), (.connect, metrics.connect), (.tls, metrics.tls),
            (.firstByte, metrics.firstByte),
        ] {
            guard let time else { continue }
            record(phase, time)
            known += time
        }
        if metrics.firstByte != nil { record(.body, metrics.total - known) }
    }

    mutating func add(_ other: BenchPhases) {
        for place in times.indices { times[place].add(other.times[place]) }
    }

    private static func place(_ phase: Phase) -> Int {
        switch phase {
        case .queue: 0
        case .name: 1
        case .connect: 2
        case .tls: 3
        case .firstByte: 4
        case .body: 5
        case .decode: 6
        }
    }
}

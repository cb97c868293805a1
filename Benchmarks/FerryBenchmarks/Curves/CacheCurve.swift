internal import FerryMeasurement
internal import Foundation

/// Hits in a cache with this many entries, with and without its part in memory.
enum CacheCurve {
    static func run(entries: Int) async throws -> Measurement {
        let folder = try CacheCase.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var measurement = Measurement()
        for (name, memory) in [("disk_us", false), ("memory_us", true)] {
            let hits = try await CacheCase.diskHits(folder, entries: entries, memory: memory)
            measurement.extra[name] = hits.microseconds
        }
        return measurement
    }
}

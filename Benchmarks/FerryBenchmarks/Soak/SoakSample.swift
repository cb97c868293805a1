internal import CCoreDriver
internal import FerryMeasurement
internal import Foundation

/// The state of a process at one moment of a soak.
struct SoakSample: Codable, Sendable {
    /// Since the start.
    var seconds: Double
    /// The resident size in kilobytes.
    var memory: Int
    /// The part of it that the program has allocated, in kilobytes; the rest belongs to the allocator.
    var allocated: Int
    var descriptors: Int
    var threads: Int
    /// Runs that have ended so far.
    var ended: Int

    static func now(since start: ContinuousClock.Instant, ended: Int) -> SoakSample {
        let allocated = ccore_allocated()
        return SoakSample(
            seconds: start.duration(to: .now) / .seconds(1), memory: ProcessUsage.memory, allocated: allocated / 1024,
            descriptors: entries("/proc/self/fd"), threads: entries("/proc/self/task"), ended: ended)
    }

    private static func entries(_ folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
    }
}

/// All results of a soak of one client.
struct SoakReport: Codable, Sendable {
    /// How often each kind of run was started and ended, and how.
    struct Tally: Codable, Sendable {
        var started = 0
        var ended = 0
        /// Runs that ended as they should.
        var right = 0
        /// Descriptions of the first few that did not.
        var wrong: [String] = []

        static let keptWords = 5
    }

    var client: String
    var samples: [SoakSample] = []
    var tallies: [String: Tally] = [:]
    /// Open descriptors before the client was made, and after it was shut down.
    var descriptorsBefore = 0
    var descriptorsAfter = 0
    /// Runs that the client still held at its end.
    var left = 0

    var started: Int { tallies.values.reduce(0) { $0 + $1.started } }
    var ended: Int { tallies.values.reduce(0) { $0 + $1.ended } }
    var wrong: Int { tallies.values.reduce(0) { $0 + $1.ended - $1.right } }
}

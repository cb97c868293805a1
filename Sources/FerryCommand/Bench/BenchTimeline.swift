internal import FerryMeasurement

/// A piece of the measured time, and what ended in it.
struct BenchWindow: Sendable, Equatable {
    /// Seconds since the measurement began.
    var start: Double
    var end: Double
    var latencies: Histogram
    var failed: UInt64

    /// Accepted answers a second.
    var rate: Double { end > start ? Double(latencies.count) / (end - start) : 0 }

    mutating func join(_ next: BenchWindow) {
        end = next.end
        latencies.add(next.latencies)
        failed += next.failed
    }
}

/// How the load went over time, in at most ``mostWindows`` windows: when there are more, each takes in its neighbour,
/// without loss, and the next ones are twice as long.
struct BenchTimeline: Sendable {
    static let mostWindows = 120
    private static let shortest = 0.1

    private(set) var windows: [BenchWindow] = []
    private var length: Double
    private var seen = Histogram()
    private var failed: UInt64 = 0
    private var end = 0.0

    /// For a load that will take about so many seconds, where that is known.
    init(seconds: Double? = nil) {
        length = max(Self.shortest, (seconds ?? 0) / Double(Self.mostWindows - 20))
    }

    /// Takes in how things stand at a time; does nothing unless a window is over.
    mutating func observe(_ latencies: Histogram, failed: UInt64, at seconds: Double) {
        if seconds - end < length * 0.99 { return }
        append(latencies, failed, seconds)
        if windows.count <= Self.mostWindows { return }
        for index in stride(from: 0, to: windows.count - 1, by: 2) { windows[index].join(windows[index + 1]) }
        windows = stride(from: 0, to: windows.count, by: 2).map { windows[$0] }
        length *= 2
    }

    /// Takes in the rest; what would be less than half a window goes to the last one.
    mutating func finish(_ latencies: Histogram, failed: UInt64, at seconds: Double) {
        if seconds <= end { return }
        let isShort = seconds - end < length / 2
        append(latencies, failed, seconds)
        if isShort, windows.count > 1 {
            let rest = windows.removeLast()
            windows[windows.count - 1].join(rest)
        }
    }

    private mutating func append(_ latencies: Histogram, _ failed: UInt64, _ seconds: Double) {
        windows.append(
            BenchWindow(
                start: end, end: seconds, latencies: latencies.since(seen), failed: failed - self.failed))
        (seen, self.failed, end) = (latencies, failed, seconds)
    }
}

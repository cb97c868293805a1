/// The conditions after a soak, each with its figure.
struct SoakVerdict {
    struct Point {
        var name: String
        var figure: String
        var holds: Bool
    }

    let points: [Point]

    var holds: Bool { points.allSatisfy(\.holds) }

    init(_ report: SoakReport) {
        let settled = Self.settled(report.samples)
        let memory = Self.growth(of: settled, \.memory)
        let allocated = Self.growth(of: settled, \.allocated)
        let descriptors = Self.rise(of: report.samples.map(\.descriptors))
        let threads = Self.rise(of: report.samples.map(\.threads))
        points = [
            Point(
                name: "runs that ended once", figure: "\(report.ended) of \(report.started)",
                holds: report.ended == report.started && report.ended > 0),
            Point(name: "ended in another way than they must", figure: "\(report.wrong)", holds: report.wrong == 0),
            Point(name: "held at the end", figure: "\(report.left)", holds: report.left == 0),
            Point(
                name: "memory in ten minutes", figure: "\(Int((memory * 600).rounded())) KB", holds: memory * 600 < 1024
            ),
            Point(
                name: "allocated in ten minutes", figure: "\(Int((allocated * 600).rounded())) KB",
                holds: allocated * 600 < 1024),
            Point(
                name: "descriptors, last third beside the one before", figure: "\(descriptors)",
                holds: descriptors <= 16),
            Point(name: "threads, likewise", figure: "\(threads)", holds: threads <= 4),
            Point(
                name: "descriptors after the shutdown",
                figure: "\(report.descriptorsAfter) (\(report.descriptorsBefore) before)",
                holds: report.descriptorsAfter <= report.descriptorsBefore),
        ]
    }

    /// The allocator has what it needs after the first third.
    private static func settled(_ samples: [SoakSample]) -> [SoakSample] { Array(samples.dropFirst(samples.count / 3)) }

    /// Kilobytes per second, by least squares.
    static func growth(of samples: [SoakSample], _ size: (SoakSample) -> Int) -> Double {
        guard samples.count > 1 else { return 0 }
        let count = Double(samples.count)
        let meanTime = samples.reduce(0) { $0 + $1.seconds } / count
        let meanMemory = samples.reduce(0) { $0 + Double(size($1)) } / count
        var both = 0.0
        var squares = 0.0
        for sample in samples {
            let time = sample.seconds - meanTime
            both += time * (Double(size(sample)) - meanMemory)
            squares += time * time
        }
        return squares > 0 ? both / squares : 0
    }

    /// By how much the maximum of the last third exceeds the maximum of the third before.
    private static func rise(of figures: [Int]) -> Int {
        let third = figures.count / 3
        guard third > 0 else { return 0 }
        let last = figures.suffix(third).max() ?? 0
        let before = figures.dropLast(third).suffix(third).max() ?? 0
        return last - before
    }
}

internal import FerryMeasurement
internal import Foundation

/// `FerryBenchmarks curves`: how the cost of a request grows with concurrency, the size of bodies, and the size of the
/// cache. Writes a plot of each, and the figures.
struct CurvesCommand {
    private static let concurrencies = [1, 4, 16, 64, 256, 1000, 4000, 10_000]
    private static let entries = [100, 1000, 10_000, 100_000, 1_000_000]
    /// In a fixed order, so that each has the same colour in all plots.
    private static let rivals: [Rival] = [.bare, .await, .go, .wrk, .urlSession, .awaitNative]
    /// URLSession needs a thread's worth of work for each concurrent request; beyond these numbers it takes minutes and
    /// shows nothing new.
    private static let mostOfURLSession = 256
    /// Go and the bare client share 64 connections; Ferry and wrk open one for each concurrent request.
    private static let mostOfWrk = 1000

    private let options: CurvesOptions

    init(_ arguments: [String]) throws { options = try CurvesOptions(arguments) }

    func run() throws {
        let date = Date()
        try OutputFolder.make(options.folder)
        let programs = try ProgramRivals()
        defer { programs.remove() }
        let server = try Server(preferringNginx: true)
        defer { server.stop() }
        for kind in options.kinds {
            let curve: Curve =
                switch kind {
                case .concurrency: try concurrency(server.url, programs)
                case .bodies: try bodies(server.url, programs)
                case .cache: try cache()
                }
            print(Self.text(curve))
            if let folder = options.folder { try write(curve, date, to: folder) }
        }
    }

    // MARK: The curves

    private func concurrency(_ server: String, _ programs: ProgramRivals) throws -> Curve {
        let rivals = (Self.rivals + [.closures, .coreNative, .executorNative]).filter(programs.has)
        let lines = try measured(rivals, Self.concurrencies) { rival, count in
            if rival == .urlSession && count > Self.mostOfURLSession { return nil }
            if rival == .wrk && count > Self.mostOfWrk { return nil }
            // Each size is run often enough for the start not to count.
            let total = max(count, scaled(rival == .urlSession ? 4_000 : max(30_000, 20 * count)))
            return Load(url: server + "/hello", total: total, concurrency: count, length: 12, connections: count)
        } by: {
            try measure($0, $1, programs)
        }
        return Curve(
            name: "concurrency", title: "CPU of a GET of 12 bytes, by how many are at once",
            sizeLabel: "requests at once",
            figureLabel: "µs", lines: lines)
    }

    private func bodies(_ server: String, _ programs: ProgramRivals) throws -> Curve {
        let rivals = Self.rivals.filter(programs.has)
        let lines = try measured(rivals, Nginx.sizes) { rival, size in
            let bytes = rival == .urlSession ? 100_000_000 : 600_000_000
            let total = max(48, scaled(min(rival == .urlSession ? 3_000 : 20_000, bytes / size)))
            return Load(url: server + "/bytes/\(size)", total: total, concurrency: 16, length: size)
        } by: {
            try measure($0, $1, programs)
        }
        return Curve(
            name: "bodies", title: "CPU of a GET, by the size of its body, 16 at once", sizeLabel: "bytes",
            figureLabel: "µs", lines: lines)
    }

    private func cache() throws -> Curve {
        var lines = ["from the disk", "with 32 MB of memory"].map { Curve.Line(client: $0, points: []) }
        for entries in Self.entries where entries <= options.mostEntries {
            note("cache  \(entries)")
            let load = Load(url: "", total: entries, concurrency: 0, length: 0)
            let figures = try WorkerProcess.measure("cache-curve", load).extra
            for (index, name) in ["disk_us", "memory_us"].enumerated() {
                lines[index].points.append(.init(size: Double(entries), figure: figures[name] ?? .nan))
            }
        }
        return Curve(
            name: "cache", title: "CPU of a cache hit of 2 KB, by how many there are", sizeLabel: "entries",
            figureLabel: "µs", lines: lines)
    }

    // MARK: Measuring

    private func scaled(_ total: Int) -> Int { Int(Double(total) * options.scale) }

    /// The median of the rounds, in each of which all clients take their turn at each size.
    private func measured(
        _ rivals: [Rival], _ sizes: [Int], load: (Rival, Int) -> Load?,
        by measure: (Rival, Load) throws -> Measurement
    ) throws -> [Curve.Line] {
        var figures: [Rival: [Int: [Double]]] = [:]
        for round in 0..<options.rounds {
            for size in sizes {
                for rival in rivals {
                    guard let load = load(rival, size) else { continue }
                    note("round \(round + 1)/\(options.rounds)  \(size)  \(rival.title)")
                    figures[rival, default: [:]][size, default: []].append(try measure(rival, load).cpuPerRequest)
                }
            }
        }
        return rivals.map { rival in
            let points = sizes.compactMap { size in
                ResultTable.median(figures[rival]?[size] ?? []).map { Curve.Point(size: Double(size), figure: $0) }
            }
            return Curve.Line(client: rival.title, points: points)
        }
    }

    private func measure(_ rival: Rival, _ load: Load, _ programs: ProgramRivals) throws -> Measurement {
        let measurement =
            try programs.measure(rival, load)
            ?? WorkerProcess.measure(rival.worker, load, environment: rival.environment)
        if measurement.wrong + measurement.failed > 0 {
            note("  \(measurement.wrong) wrong, \(measurement.failed) failed of \(measurement.total)")
        }
        return measurement
    }

    private func note(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    // MARK: Writing

    private static func text(_ curve: Curve) -> String {
        var text = "\n\(curve.title), \(curve.figureLabel)\n"
        for line in curve.lines {
            let points = line.points.map { "\(grouped(UInt64($0.size))): \(fixed($0.figure, 1))" }
            text += "  \(line.client): \(points.joined(separator: "  "))\n"
        }
        return text
    }

    private func write(_ curve: Curve, _ date: Date, to folder: String) throws {
        let name = "\(folder)/\(date.formatted(.iso8601).replacingOccurrences(of: ":", with: "-"))-curve-\(curve.name)"
        let plot = LinePlot(
            title: curve.title, xLabel: curve.sizeLabel, yLabel: curve.figureLabel,
            lines: curve.lines.map { line in .init(name: line.client, points: line.points.map { ($0.size, $0.figure) })
            },
            scales: .logarithmic)
        try Data(plot.svg.utf8).write(to: URL(fileURLWithPath: name + ".svg"))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        try encoder.encode(curve).write(to: URL(fileURLWithPath: name + ".json"))
        print("written to \(name).svg and .json")
    }
}

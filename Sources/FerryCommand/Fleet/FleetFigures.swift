internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// The part of a load that one process carries.
struct FleetShare: Sendable, Equatable {
    /// The position of the process, from 0 to `count - 1`.
    var index: Int
    var count: Int

    static let whole = FleetShare(index: 0, count: 1)
    /// The permitted numbers of workers.
    static let counts = 1...1000

    /// This process's part of a number. The parts of all processes add up to the number.
    func part(of number: Int) -> Int { number / count + (index < number % count ? 1 : 0) }
}

/// When a load begins, in nanoseconds of this machine's monotonic clock.
struct FleetBegin: Sendable, Equatable {
    var warmUp: UInt64
    var measurement: UInt64

    /// The pause between the warm-up and the measurement, in which the last responses of the warm-up arrive.
    private static let pause: UInt64 = 250_000_000

    init(at start: UInt64, warmUp time: Duration) {
        warmUp = start
        measurement = time > .zero ? start + UInt64(time.microseconds) * 1000 + Self.pause : start
    }
}

extension BenchPlan {
    /// Why the load cannot be divided among so many workers; `nil` if it can.
    func obstacle(to workers: Int) -> String? {
        if let archive {
            let count = archive.entries.count
            if count < workers {
                return "\(archive.path) has \(count) requests, which is less than --workers \(workers)"
            }
            if archive.isPaced { return nil }
        }
        if case .closed(let concurrency) = model, concurrency < workers {
            return "-c \(concurrency) is less than --workers \(workers)"
        }
        if let requests, requests < workers { return "-n \(requests) is less than --workers \(workers)" }
        if namesConnections, connections < workers {
            return "--connections \(connections) is less than --workers \(workers)"
        }
        return nil
    }

    /// One worker's part. In the open model all workers have the same schedule, and of N workers each sends every Nth
    /// request of it.
    func part(_ share: FleetShare) -> BenchPlan {
        var plan = self
        plan.share = share
        if case .closed(let concurrency) = model {
            plan.model = .closed(concurrency: share.part(of: concurrency))
            plan.requests = requests.map(share.part)
        }
        if let part = archive?.part(share) { (plan.archive, plan.requests) = (part, part.entries.count) }
        plan.limit(
            to: namesConnections || plan.concurrency == 0
                ? max(1, share.part(of: connections)) : Self.usualConnections(plan.model))
        return plan
    }
}

/// The figures of one process, as it sends them to another.
struct FleetFigures: Codable, Sendable {
    var date: Date
    var totals: BenchTotals
    var seconds: Double
    var late: Double
    /// CPU time in microseconds, like the next one.
    var user: Double
    var system: Double
    var busiestThread: Double
    var process: Double
    var machine: Double
    var connections: UInt64
    var memory: Int
    var windows: [BenchWindow]
}

extension FleetFigures {
    init(_ figures: BenchFigures) {
        self.init(
            date: figures.date, totals: figures.totals, seconds: figures.seconds, late: figures.late,
            user: figures.usage.user, system: figures.usage.system, busiestThread: figures.share.busiestThread,
            process: figures.share.process, machine: figures.share.machine, connections: figures.connections,
            memory: figures.memory, windows: figures.windows)
    }

    /// Whether these figures can come from a measurement. Others could overflow a sum or the text of a figure.
    var isSound: Bool {
        // Before anything is summed up.
        if windows.count > 2 * BenchTimeline.mostWindows { return false }
        let shares = [busiestThread, process, machine]
        let counted = windows.reduce(into: UInt64(0)) { $0 += min($1.latencies.count, 1 << 48) }
        return shares.allSatisfy { (0...1).contains($0) } && [user, system].allSatisfy { (0...1e13).contains($0) }
            && (seconds == 0 || (1e-6...1e9).contains(seconds)) && (0...1e6).contains(late)
            && connections <= 1 << 48 && (0...(1 << 48)).contains(memory)
            && (0...4e9).contains(date.timeIntervalSince1970)
            && windows.allSatisfy(\.isSound)
            && counted <= 1 << 48 && totals.isSound(within: seconds)
    }

    /// Whether these figures can follow earlier ones of the same process: counts only grow.
    func follow(_ earlier: FleetFigures) -> Bool {
        totals.failed >= earlier.totals.failed && totals.latencies.contains(earlier.totals.latencies)
    }

    /// One process cannot send more requests in a second; below, receive more bytes.
    fileprivate static let mostRequests = 1e8
    fileprivate static let mostBytes = 1e13

    /// A load that ends at once has a time of 0, so some requests are allowed without any time.
    fileprivate static func isBelievable(_ count: UInt64, in seconds: Double) -> Bool {
        count <= 1 << 48 && Double(count) <= seconds * mostRequests + 1e6
    }
}

extension Histogram {
    /// At most 36 years, in nanoseconds. A sum without bounds would make the mean overflow.
    fileprivate var isBelievable: Bool { maximum <= 1 << 60 && mean <= 0x1p61 }
}

extension BenchWindow {
    fileprivate var isSound: Bool {
        guard start >= 0, end <= 1e9, start == end || end - start >= 1e-6, latencies.isBelievable else { return false }
        return [latencies.count, failed].allSatisfy { FleetFigures.isBelievable($0, in: end - start) }
    }
}

extension BenchTotals {
    fileprivate func isSound(within seconds: Double) -> Bool {
        let counts =
            [failed, ok, unanswered.count, wrongBodies, engines.http1, engines.libcurl]
            + Array(statuses.values) + Array(errors.named.values)
        let texts = Array(errors.named.keys) + Array(errors.samples.keys) + Array(errors.samples.values)
        return counts.allSatisfy { FleetFigures.isBelievable($0, in: seconds) }
            && bytes <= 1 << 53 && Double(bytes) <= seconds * FleetFigures.mostBytes + 1e9
            && unsent <= failed && errors.byStatus <= failed && errors.byBody <= failed - errors.byStatus
            && statuses.count <= 1000 && statuses.keys.allSatisfy { (0...999).contains($0) }
            && texts.count <= 3000 && texts.allSatisfy { $0.utf8.count <= 10_000 }
            && phases.times.count == BenchPhases.Phase.allCases.count
            && ([latencies, lateness, lag, unanswered] + phases.times).allSatisfy(\.isBelievable)
    }
}

extension BenchFigures {
    /// The figures that a worker has sent.
    init(_ figures: FleetFigures) {
        self.init(figures.totals, date: figures.date)
        (seconds, late, connections) = (figures.seconds, figures.late, figures.connections)
        (memory, windows) = (figures.memory, figures.windows)
        usage = ProcessUsage(user: figures.user, system: figures.system)
        share = CPUShare(
            busiestThread: figures.busiestThread, process: figures.process, machine: figures.machine)
    }

    /// Merges the figures of several processes: counts and histograms without loss, CPU shares as those of the busiest.
    init(merging all: [BenchFigures]) {
        self.init(BenchTotals(), date: all.map(\.date).min() ?? .now)
        memory = 0
        for figures in all {
            totals.add(figures.totals)
            seconds = max(seconds, figures.seconds)
            late = max(late, figures.late)
            usage = ProcessUsage(
                user: usage.user + figures.usage.user, system: usage.system + figures.usage.system)
            share = CPUShare(
                busiestThread: max(share.busiestThread, figures.share.busiestThread),
                process: max(share.process, figures.share.process),
                machine: max(share.machine, figures.share.machine))
            connections += figures.connections
            memory += figures.memory
        }
        windows = BenchWindow.merged(all.map(\.windows))
    }
}

extension BenchWindow {
    /// Merges the windows of processes that began at the same time. The result has the windows of the process with the
    /// fewest. A window of another process is added to the one that contains its middle.
    static func merged(_ all: [[BenchWindow]]) -> [BenchWindow] {
        let all = all.filter { !$0.isEmpty }
        guard var merged = all.min(by: { $0.count < $1.count }) else { return [] }
        for index in merged.indices { (merged[index].latencies, merged[index].failed) = (Histogram(), 0) }
        for windows in all {
            var place = 0
            for window in windows {
                let middle = (window.start + window.end) / 2
                while place < merged.count - 1, merged[place].end <= middle { place += 1 }
                merged[place].latencies.add(window.latencies)
                merged[place].failed += window.failed
            }
        }
        // The longest load ends last.
        merged[merged.count - 1].end = all.compactMap(\.last?.end).max() ?? merged[merged.count - 1].end
        return merged
    }
}

/// The outcome of one worker, for the report.
struct FleetMember: Codable, Sendable, Equatable {
    enum Outcome: String, Codable, Sendable {
        case finished
        /// It was interrupted with ctrl-C at the worker itself.
        case interrupted
        /// It has not sent a valid result.
        case lost
    }

    var name: String
    var outcome: Outcome
    /// The number of requests that it is known to have finished, accepted or not.
    var requests: UInt64
    /// How many seconds after the agreed time it started.
    var late: Double
    /// Why it was lost.
    var reason: String?

    private enum CodingKeys: String, CodingKey {
        case name, outcome, requests, reason
        case late = "late_s"
    }

    /// A warning for standard error, the table and the page; `nil` if its share is complete.
    func complaint(number: Int) -> String? {
        let place = "worker \(number) (\(name))"
        switch outcome {
        case .finished: return nil
        case .interrupted:
            return "\(place) was interrupted after \(grouped(requests)) requests; its share is incomplete"
        case .lost:
            let known = "the figures include \(grouped(requests)) of its requests"
            return "\(place) was lost: \(reason ?? "no message"); \(known)"
        }
    }
}

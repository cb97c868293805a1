internal import FoundationEssentials
internal import Glibc

/// How busy this process, its busiest thread and the machine were since an earlier look.
///
/// From proc(5): `/proc/self/task/*/schedstat`, in nanoseconds, and `/proc/stat`. What cannot be read counts as 0.
public struct CPUShare: Sendable, Equatable {
    /// Of one core, from 0 to 1: a thread that is at 1 can do no more.
    public var busiestThread: Double
    /// Of all cores, from 0 to 1.
    public var process: Double
    /// Of all cores, from 0 to 1, by all processes.
    public var machine: Double

    /// Shares known from elsewhere.
    public init(busiestThread: Double, process: Double, machine: Double) {
        self.busiestThread = busiestThread
        self.process = process
        self.machine = machine
    }

    /// A look at the counters.
    public struct Reading: Sendable {
        private let time = monotonicNanoseconds()
        private let threads = Self.threads()
        private let machine = Self.machine()
        private let usage = ProcessUsage.now

        /// Looks now.
        public init() {}

        /// What happened since `earlier`.
        public func since(_ earlier: Reading) -> CPUShare {
            let elapsed = Double(max(1, time - earlier.time))
            let cores = Double(max(1, ProcessInfo.processInfo.activeProcessorCount))
            let used = usage - earlier.usage
            let busiest = threads.map { Double($0.value - min($0.value, earlier.threads[$0.key] ?? 0)) }.max() ?? 0
            let ticks = machine.all - min(machine.all, earlier.machine.all)
            let idle = machine.idle - min(machine.idle, earlier.machine.idle)
            return CPUShare(
                busiestThread: min(1, busiest / elapsed),
                process: min(1, (used.user + used.system) * 1000 / elapsed / cores),
                machine: ticks == 0 ? 0 : 1 - min(1, Double(idle) / Double(ticks)))
        }

        /// Nanoseconds at work by the thread's number.
        private static func threads() -> [String: UInt64] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            var times: [String: UInt64] = [:]
            for name in names {
                guard let text = try? String(contentsOfFile: "/proc/self/task/\(name)/schedstat", encoding: .utf8),
                    let time = text.split(separator: " ").first.flatMap({ UInt64($0) })
                else { continue }
                times[name] = time
            }
            return times
        }

        /// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`, the last two of which
        /// are in the first two.
        private static func machine() -> (all: UInt64, idle: UInt64) {
            guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8),
                let line = text.split(separator: "\n").first, line.hasPrefix("cpu ")
            else { return (0, 0) }
            let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { UInt64($0) }
            guard ticks.count >= 5 else { return (0, 0) }
            return (ticks.reduce(0, +), ticks[3] + ticks[4])
        }
    }
}

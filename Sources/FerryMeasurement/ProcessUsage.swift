internal import FoundationEssentials
internal import Glibc

/// The CPU time that the process has used since its start.
public struct ProcessUsage: Sendable, Equatable {
    /// CPU time in the program and its libraries, in microseconds.
    public var user: Double
    /// CPU time in the kernel, in microseconds.
    public var system: Double

    /// No CPU time.
    public static let zero = ProcessUsage(user: 0, system: 0)

    /// The current figures, over all threads.
    public static var now: ProcessUsage {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return ProcessUsage(usage)
    }

    /// Figures known from elsewhere.
    public init(user: Double, system: Double) {
        self.user = user
        self.system = system
    }

    /// Converts the kernel's figures.
    init(_ usage: rusage) {
        self.init(user: Self.microseconds(usage.ru_utime), system: Self.microseconds(usage.ru_stime))
    }

    /// The CPU time used between two readings.
    public static func - (end: ProcessUsage, start: ProcessUsage) -> ProcessUsage {
        ProcessUsage(user: end.user - start.user, system: end.system - start.system)
    }

    /// The largest resident size in kilobytes.
    ///
    /// `ru_maxrss` is unsuitable: a child process starts with the value of its parent.
    public static var peakMemory: Int { status("VmHWM:") }

    /// The current resident size in kilobytes.
    public static var memory: Int { status("VmRSS:") }

    private static func microseconds(_ time: timeval) -> Double {
        Double(time.tv_sec) * 1_000_000 + Double(time.tv_usec)
    }

    /// One figure of `/proc/self/status` (proc(5)); 0 if it is missing.
    private static func status(_ name: String) -> Int {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return 0 }
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            let figure = line.dropFirst(name.count).drop { $0 == " " || $0 == "\t" }.prefix { $0.isNumber }
            return Int(figure) ?? 0
        }
        return 0
    }
}

/// Raises the soft limit of open descriptors to the hard one; thousands of connections need thousands of descriptors.
@discardableResult
public func raiseDescriptorLimit() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int(limit.rlim_cur)
}

/// How busy this process, its busiest thread and the machine were since an earlier reading.
///
/// From proc(5): `/proc/self/task/*/schedstat`, in nanoseconds, and `/proc/stat`. Values that cannot be read count as
/// 0.
public struct CPUShare: Sendable, Equatable {
    /// The share of one core that the busiest thread used, from 0 to 1: at 1 it is saturated.
    public var busiestThread: Double
    /// The share of all cores that this process used, from 0 to 1.
    public var process: Double
    /// The share of all cores that all processes used, from 0 to 1.
    public var machine: Double

    /// Makes shares from known values.
    public init(busiestThread: Double, process: Double, machine: Double) {
        self.busiestThread = busiestThread
        self.process = process
        self.machine = machine
    }

    /// A reading of the counters.
    public struct Reading: Sendable {
        private let time = monotonicNanoseconds()
        private let threads = Self.threads()
        private let machine = Self.machine()
        private let usage = ProcessUsage.now

        /// Reads the counters now.
        public init() {}

        /// The shares since `earlier`.
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

        /// The nanoseconds of CPU time by the thread's number.
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

        /// Reads the first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`. The last two
        /// are included in the first two.
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

/// The monotonic clock in nanoseconds: one call, without `Duration` arithmetic, for millions of calls in a run.
public func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Blocks the thread until the monotonic clock has reached this time, or a signal has arrived.
public func blockThread(untilMonotonic nanoseconds: UInt64) {
    var time = timespec()
    time.tv_sec = Int(nanoseconds / 1_000_000_000)
    time.tv_nsec = Int(nanoseconds % 1_000_000_000)
    clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil)
}

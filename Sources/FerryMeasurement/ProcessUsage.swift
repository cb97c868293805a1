internal import FoundationEssentials
internal import Glibc

/// What the process has used since its start.
public struct ProcessUsage: Sendable, Equatable {
    /// Microseconds of CPU in the program and its libraries.
    public var user: Double
    /// Microseconds of CPU in the kernel.
    public var system: Double

    /// Nothing used.
    public static let zero = ProcessUsage(user: 0, system: 0)

    /// The present figures, over all threads.
    public static var now: ProcessUsage {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return ProcessUsage(usage)
    }

    private init(user: Double, system: Double) {
        self.user = user
        self.system = system
    }

    /// From what the kernel counted.
    init(_ usage: rusage) {
        self.init(user: Self.microseconds(usage.ru_utime), system: Self.microseconds(usage.ru_stime))
    }

    /// What was used between two readings.
    public static func - (end: ProcessUsage, start: ProcessUsage) -> ProcessUsage {
        ProcessUsage(user: end.user - start.user, system: end.system - start.system)
    }

    /// Largest resident size in kilobytes.
    ///
    /// `ru_maxrss` will not do: a child process starts with its parent's.
    public static var peakMemory: Int { status("VmHWM:") }

    /// Present resident size in kilobytes.
    public static var memory: Int { status("VmRSS:") }

    private static func microseconds(_ time: timeval) -> Double {
        Double(time.tv_sec) * 1_000_000 + Double(time.tv_usec)
    }

    /// One figure of `/proc/self/status` (proc(5)); 0 when there is none.
    private static func status(_ name: String) -> Int {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return 0 }
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            let figure = line.dropFirst(name.count).drop { $0 == " " || $0 == "\t" }.prefix { $0.isNumber }
            return Int(figure) ?? 0
        }
        return 0
    }
}

/// Lifts the soft limit of open descriptors to the hard one; thousands of connections need thousands of descriptors.
@discardableResult
public func raiseDescriptorLimit() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int(limit.rlim_cur)
}

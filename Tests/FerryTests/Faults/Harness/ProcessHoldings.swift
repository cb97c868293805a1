import Foundation

/// What this process holds, as the kernel says. Tests run one after another (`--no-parallel`), or it is not looked at:
/// others open and close theirs meanwhile.
enum ProcessHoldings {
    static let isAlone = CommandLine.arguments.contains("--no-parallel")

    /// What the open descriptors lead to; but for the timers of libdispatch, which opens one for each clock when that
    /// is first asked for, perhaps in the middle of a test, and keeps it.
    static var descriptors: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        // The one that lists them is gone by now.
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            .filter { $0 != "anon_inode:[timerfd]" && !isSanitizers($0) }
    }

    /// The thread sanitizer has a process that tells it names, behind two pipes, from when it first asks: also for what
    /// it is told to pass over.
    private static func isSanitizers(_ name: String) -> Bool {
        #if FERRY_TSAN
        return name.hasPrefix("pipe:")
        #else
        return false
        #endif
    }

    /// Bytes that are resident.
    static var memory: Int { status("VmRSS:") }

    /// The most bytes that were resident since `resetPeak`.
    static var peakMemory: Int { status("VmHWM:") }

    static func resetPeak() {
        // proc(5): 5 resets the high water mark.
        try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
    }

    private static func status(_ field: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(field) }
        return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 * 1024 } ?? 0
    }
}

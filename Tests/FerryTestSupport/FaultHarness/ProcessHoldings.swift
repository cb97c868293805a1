import Foundation

/// The resources of this process, from the kernel. The tests run one after another (`--no-parallel`), otherwise this is
/// not checked: others open and close theirs meanwhile.
enum ProcessHoldings {
    static let isAlone = CommandLine.arguments.contains("--no-parallel")

    /// The targets of the open descriptors. The timers of libdispatch are left out: it opens one for each clock on
    /// first use, perhaps during a test, and keeps it.
    static var descriptors: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        // The descriptor that lists them is closed by now.
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            .filter { $0 != "anon_inode:[timerfd]" && !isSanitizers($0) }
    }

    /// From its first symbol lookup on, the thread sanitizer has a helper process behind two pipes, even for suppressed
    /// reports.
    private static func isSanitizers(_ name: String) -> Bool {
        #if FERRY_TSAN
        return name.hasPrefix("pipe:")
        #else
        return false
        #endif
    }

    /// The resident bytes; 0 under a sanitizer, which keeps freed memory.
    static var memory: Int {
        #if FERRY_TSAN || FERRY_ASAN
        0
        #else
        status("VmRSS:")
        #endif
    }

    /// The peak of resident bytes since `resetPeak`.
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

internal import Glibc

/// Writes each entry as one line, with the time in front, to an open descriptor: `2026-11-20T21:14:43.120Z debug …`.
///
/// A line is one `write(2)`, so that lines of several threads and, in a file opened for appending, of several processes
/// do not mix. A line that cannot be written is lost: a log must not end a run. The descriptor stays the caller's, and
/// so does `SIGPIPE`, which a process that logs to a pipe had better ignore.
public struct FileHandleLogSink: LogSink {
    /// Where it writes.
    public let descriptor: Int32

    /// Entries below it are not made.
    public let minimumLevel: LogLevel

    private let now: @Sendable () -> timespec

    /// A sink that writes to `descriptor` as long as it is open. The default is to leave out `trace`.
    public init(descriptor: Int32, minimumLevel: LogLevel = .debug) {
        self.init(descriptor: descriptor, minimumLevel: minimumLevel) {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return time
        }
    }

    init(descriptor: Int32, minimumLevel: LogLevel, now: @escaping @Sendable () -> timespec) {
        self.descriptor = descriptor
        self.minimumLevel = minimumLevel
        self.now = now
    }

    /// Writes it.
    public func log(_ entry: LogEntry) {
        var line = "\(Self.text(of: now())) \(entry)\n"
        line.withUTF8 { bytes in
            var result = 0
            repeat { result = write(descriptor, bytes.baseAddress, bytes.count) } while result < 0 && errno == EINTR
        }
    }

    /// RFC 3339, in UTC, to the millisecond.
    private static func text(of time: timespec) -> String {
        var seconds = time.tv_sec
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date =
            "\(padded(Int(parts.tm_year) + 1900, 4))-\(padded(Int(parts.tm_mon) + 1, 2))-\(padded(Int(parts.tm_mday), 2))"
        let clock = "\(padded(Int(parts.tm_hour), 2)):\(padded(Int(parts.tm_min), 2)):\(padded(Int(parts.tm_sec), 2))"
        return "\(date)T\(clock).\(padded(time.tv_nsec / 1_000_000, 3))Z"
    }
}

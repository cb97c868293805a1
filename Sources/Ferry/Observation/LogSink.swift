internal import Glibc

/// Takes what an agent has to say of its runs. There is none by default.
///
/// Entries come from any thread, the network's own included: a sink must not block for long, and must be safe to call
/// at once from several. They carry no secrets, see ``LogEntry``.
public protocol LogSink: Sendable {
    /// Entries below it are not made. The default is `.debug`.
    var minimumLevel: LogLevel { get }

    /// Takes one entry.
    func log(_ entry: LogEntry)
}

extension LogSink {
    /// `.debug`
    public var minimumLevel: LogLevel { .debug }

    /// Makes an entry and takes it, if one of this level is wanted.
    func log(_ level: LogLevel, _ entry: @autoclosure () -> LogEntry) {
        if level < minimumLevel { return }
        var entry = entry()
        entry.level = level
        log(entry)
    }
}

/// How much an entry matters. Ferry itself writes nothing above ``debug``.
public enum LogLevel: Int, Sendable, Hashable, CaseIterable, Comparable, CustomStringConvertible {
    /// Every step, header fields included.
    case trace
    /// What starts and ends, and what is tried again.
    case debug
    /// For the application's own entries, as are all that follow.
    case info
    /// Worth a look.
    case notice
    /// Something is not as it should be.
    case warning
    /// Something has failed.
    case error

    /// Its name.
    public var description: String {
        switch self {
        case .trace: "trace"
        case .debug: "debug"
        case .info: "info"
        case .notice: "notice"
        case .warning: "warning"
        case .error: "error"
        }
    }

    /// By weight.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// One thing that happened, for a log. What is `nil` was not known, or has no meaning for it.
///
/// It carries no secrets: URLs are without user, password, values of the query and fragment; the values of header
/// fields that are, or by their name seem to be, secret are `***`; bodies are never part of it.
public struct LogEntry: Sendable {
    /// How much it matters.
    public var level: LogLevel
    /// What happened, in a few words that are the same each time.
    public var message: String
    /// The `id` of the run.
    public var run: UInt64?
    /// The method.
    public var method: HTTPMethod?
    /// The host, with its port unless that is the scheme's own.
    public private(set) var host: String?
    /// The URL, redacted.
    public private(set) var url: String?
    /// The status code.
    public var status: Int?
    /// How long it took.
    public var duration: Duration?
    /// Which sending it was, from 1.
    public var attempt: Int?
    /// Of a fault its code.
    public var error: RequestError.Code?
    /// Header fields, redacted.
    public private(set) var headers: Headers?

    /// An entry. The URL is redacted here.
    public init(_ level: LogLevel, _ message: String, run: UInt64? = nil, url: String? = nil) {
        self.level = level
        self.message = message
        self.run = run
        if let url {
            self.url = Redaction.url(url)
            let host = HostKey.authority(of: url)
            self.host = host.isEmpty ? nil : host
        }
    }

    /// An entry of a run.
    public init(_ level: LogLevel, _ message: String, run: RunInfo) {
        self.level = level
        self.message = message
        self.run = run.id
        method = run.method
        let url = run.url
        if !url.isEmpty {
            self.url = url
            host = run.host
        }
    }

    /// Adds header fields. The values of secret ones, those named in `sensitive` among them, become `***`.
    public mutating func setHeaders(_ headers: Headers, sensitive: [String] = []) {
        self.headers = Redaction.headers(headers, sensitive: sensitive)
    }
}

extension LogEntry: CustomStringConvertible {
    /// One line, like `debug finished run=7 method=GET url=http://h/x status=200 us=1240`, without its end.
    ///
    /// Values with spaces or quotes stand in quotes, and control characters are escaped, so that no value can forge a
    /// field or a line.
    public var description: String {
        var line = LogLine("\(level) \(message)")
        if let run { line.append("run", "\(run)") }
        if let method { line.append("method", method.rawValue) }
        if let url { line.append("url", url) } else if let host { line.append("host", host) }
        if let status { line.append("status", "\(status)") }
        if let duration { line.append("us", "\(duration.microseconds)") }
        if let attempt { line.append("attempt", "\(attempt)") }
        if let error { line.append("error", error.description) }
        for field in headers ?? Headers() { line.append("header", "\(field.name): \(field.value)") }
        return line.text
    }
}

/// A line of words and fields under construction.
private struct LogLine {
    private(set) var text: String

    init(_ words: String) { text = Self.escaped(words, quotes: false) }

    mutating func append(_ name: String, _ value: String) {
        // Among what is not ASCII there are controls, too.
        let isBare = !value.isEmpty && value.utf8.allSatisfy { 0x21..<0x7F ~= $0 && $0 != 0x22 && $0 != 0x5C }
        text += isBare ? " \(name)=\(value)" : " \(name)=\"\(Self.escaped(value, quotes: true))\""
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        if !text.utf8.contains(where: { isControl($0) || $0 == 0x22 || $0 == 0x5C || $0 >= 0xC2 }) { return text }
        var made = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A: made += "\\n"
            case 0x0D: made += "\\r"
            case 0x09: made += "\\t"
            case 0x22 where quotes, 0x5C where quotes: made += "\\\(scalar)"
            case _ where scalar.commandsTerminals: made += "\\u{\(String(scalar.value, radix: 16))}"
            default: made.unicodeScalars.append(scalar)
            }
        }
        return made
    }
}

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

/// Writes each entry as one line to standard error.
public struct PrintLogSink: LogSink {
    /// Entries below it are not made.
    public let minimumLevel: LogLevel

    private let lines: FileHandleLogSink

    /// A sink. The default is to leave out `trace`.
    public init(minimumLevel: LogLevel = .debug) {
        self.minimumLevel = minimumLevel
        lines = FileHandleLogSink(descriptor: 2, minimumLevel: minimumLevel)
    }

    /// Writes it.
    public func log(_ entry: LogEntry) { lines.log(entry) }
}

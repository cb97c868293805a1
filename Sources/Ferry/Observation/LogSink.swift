internal import Glibc

/// Receives the log entries of an agent. By default there is no sink.
///
/// Entries come from any thread, including the network's own. A sink must not block for long, and must support
/// concurrent calls. Entries contain no secrets, see ``LogEntry``.
public protocol LogSink: Sendable {
    /// Entries below this level are not created. The default is `.debug`.
    var minimumLevel: LogLevel { get }

    /// Receives one entry.
    func log(_ entry: LogEntry)
}

extension LogSink {
    /// `.debug`
    public var minimumLevel: LogLevel { .debug }

    /// Creates and logs an entry if its level is enabled.
    func log(_ level: LogLevel, _ entry: @autoclosure () -> LogEntry) {
        if level < minimumLevel { return }
        var entry = entry()
        entry.level = level
        log(entry)
    }
}

/// The severity of an entry. Ferry itself logs nothing above ``debug``, except a ``warning`` if changed TLS files
/// cannot be used.
public enum LogLevel: Int, Sendable, Hashable, CaseIterable, Comparable, CustomStringConvertible {
    /// Every step, with header fields.
    case trace
    /// Starts, ends and retries.
    case debug
    /// For entries of the application.
    case info
    /// A notable event.
    case notice
    /// A possible problem: changed TLS files that cannot be used.
    case warning
    /// A failure.
    case error

    /// The name.
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

    /// Compares by severity.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// One event, for a log. A member is `nil` if it is unknown or does not apply.
///
/// An entry contains no secrets: URLs have no user, password, query values and fragment; the values of header fields
/// that are secret, or seem to be by their name, are `***`; bodies are never included.
public struct LogEntry: Sendable {
    /// The severity.
    public var level: LogLevel
    /// What happened, in a few words that are always the same for the same event.
    public var message: String
    /// The `id` of the run.
    public var run: UInt64?
    /// The method.
    public var method: HTTPMethod?
    /// The host, with its port unless it is the scheme's default.
    public private(set) var host: String?
    /// The redacted URL.
    public private(set) var url: String?
    /// The status code.
    public var status: Int?
    /// The duration.
    public var duration: Duration?
    /// The number of the attempt, from 1.
    public var attempt: Int?
    /// The code of the error.
    public var error: RequestError.Code?
    /// The redacted header fields.
    public private(set) var headers: Headers?

    /// Creates an entry. The URL is redacted here.
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

    /// Creates an entry for a run.
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

    /// Adds header fields. The values of secret ones, including those named in `sensitive`, become `***`.
    public mutating func setHeaders(_ headers: Headers, sensitive: [String] = []) {
        self.headers = Redaction.headers(headers, sensitive: sensitive)
    }
}

extension LogEntry: CustomStringConvertible {
    /// One line without its end, like `debug finished run=7 method=GET url=http://h/x status=200 us=1240`.
    ///
    /// Values with spaces or quotes are quoted, and control characters are escaped, so that no value can forge a field
    /// or a line.
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

/// A log line under construction: words and fields.
private struct LogLine {
    private(set) var text: String

    init(_ words: String) { text = Self.escaped(words, quotes: false) }

    mutating func append(_ name: String, _ value: String) {
        // Non-ASCII characters include controls, too.
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

/// Writes each entry as one line with a time stamp to an open file descriptor: `2026-11-20T21:14:43.120Z debug …`.
///
/// A line is one `write(2)`, so that lines of several threads and, in a file opened for appending, of several processes
/// do not mix. If a line cannot be written it is lost, because logging must not end a run. The caller keeps the
/// ownership of the descriptor, and should ignore `SIGPIPE` if it is a pipe.
public struct FileHandleLogSink: LogSink {
    /// The file descriptor.
    public let descriptor: Int32

    /// Entries below this level are not created.
    public let minimumLevel: LogLevel

    private let now: @Sendable () -> timespec

    /// Creates a sink that writes to `descriptor`, which must stay open. By default it omits `trace`.
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

    /// Writes the entry.
    public func log(_ entry: LogEntry) {
        var line = "\(Self.text(of: now())) \(entry)\n"
        line.withUTF8 { bytes in
            var result = 0
            repeat { result = write(descriptor, bytes.baseAddress, bytes.count) } while result < 0 && errno == EINTR
        }
    }

    /// The time in the format of RFC 3339, in UTC, with milliseconds.
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
    /// Entries below this level are not created.
    public let minimumLevel: LogLevel

    private let lines: FileHandleLogSink

    /// Creates a sink. By default it omits `trace`.
    public init(minimumLevel: LogLevel = .debug) {
        self.minimumLevel = minimumLevel
        lines = FileHandleLogSink(descriptor: 2, minimumLevel: minimumLevel)
    }

    /// Writes the entry.
    public func log(_ entry: LogEntry) { lines.log(entry) }
}

extension Unicode.Scalar {
    /// Whether a terminal interprets it as more than a character: C0 and C1 controls (U+009B alone starts a command),
    /// the two Unicode line separators, and characters that change the direction of text.
    package var commandsTerminals: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Whether it is invisible or unassigned: controls, line separators, characters that change the order or look of
    /// the text around them, and characters without a meaning.
    var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}

#if Logging
public import Ferry
public import Logging

/// A log sink that passes the log entries of an agent to a `Logger` of swift-log.
///
///     configuration.logSink = LoggerSink(Logger(label: "shop.http"))
///
/// The message of an entry becomes the logger's message. Its other members become metadata, with the names used in the
/// text of an entry: `run`, `method`, `host`, `url`, `status`, `us` (the duration, in microseconds), `attempt`,
/// `error`, and `headers`, a list of `name: value`. The source is `Ferry`. Entries carry no secrets, see `LogEntry`.
///
/// The logger is called on the thread that makes the entry, often that of an event loop: a log handler that
/// blocks delays that event loop.
public struct LoggerSink: LogSink {
    /// The logger that receives the entries.
    public let logger: Logger

    /// Creates a sink that writes to `logger`.
    public init(_ logger: Logger) { self.logger = logger }

    /// The level of the logger, so that no entries are made that it would drop.
    public var minimumLevel: LogLevel {
        switch logger.logLevel {
        case .trace: .trace
        case .debug: .debug
        case .info: .info
        case .notice: .notice
        case .warning: .warning
        // There is no higher level; the logger drops entries below its own.
        case .error, .critical: .error
        }
    }

    /// Passes the entry to the logger.
    public func log(_ entry: LogEntry) {
        logger.log(
            level: Logger.Level(entry.level), "\(entry.message)", metadata: Self.metadata(of: entry), source: "Ferry")
    }

    private static func metadata(of entry: LogEntry) -> Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        if let run = entry.run { metadata["run"] = "\(run)" }
        if let method = entry.method { metadata["method"] = "\(method.rawValue)" }
        if let host = entry.host { metadata["host"] = "\(host)" }
        if let url = entry.url { metadata["url"] = "\(url)" }
        if let status = entry.status { metadata["status"] = "\(status)" }
        if let duration = entry.duration {
            metadata["us"] = "\(Int64(exactly: (duration / .microseconds(1)).rounded()) ?? .max)"
        }
        if let attempt = entry.attempt { metadata["attempt"] = "\(attempt)" }
        if let error = entry.error { metadata["error"] = "\(error)" }
        if let headers = entry.headers {
            metadata["headers"] = .array(headers.map { "\($0.name): \($0.value)" })
        }
        return metadata
    }
}

extension Logger.Level {
    fileprivate init(_ level: LogLevel) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
    }
}
#endif

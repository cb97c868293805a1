import Ferry
import FerrySynchronization

/// Keeps the entries it gets.
final class KeptLog: LogSink {
    let minimumLevel: LogLevel
    private let kept = Mutex<[LogEntry]>([])

    init(_ minimumLevel: LogLevel = .trace) { self.minimumLevel = minimumLevel }

    func log(_ entry: LogEntry) { kept.withLock { $0.append(entry) } }

    var entries: [LogEntry] { kept.withLock { $0 } }
    var lines: [String] { entries.map(\.description) }
}

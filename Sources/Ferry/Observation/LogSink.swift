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

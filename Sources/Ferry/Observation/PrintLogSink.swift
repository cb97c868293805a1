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

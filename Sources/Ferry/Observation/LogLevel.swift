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

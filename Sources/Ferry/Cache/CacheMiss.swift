import FerryCache

/// Why the cache had no answer for a run. An open set.
public struct CacheMiss: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// A word, like `expired`.
    public let rawValue: String

    /// One of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    init(_ reason: CacheMissReason) { rawValue = reason.rawValue }

    /// Nothing is kept under the request's key.
    public static let notFound = CacheMiss(.notFound)
    /// Older than allowed, or stored before the clock was set back.
    public static let expired = CacheMiss(.expired)
    /// Of another version of the policy.
    public static let versionMismatch = CacheMiss(.versionMismatch)
    /// Of other sensitive data.
    public static let sensitiveDataMismatch = CacheMiss(.sensitiveDataMismatch)
    /// Of another version of the application.
    public static let appVersionMismatch = CacheMiss(.appVersionMismatch)
    /// A header field that the answer varies by (`Vary`) is another one.
    public static let varyMismatch = CacheMiss(.varyMismatch)
    /// The cookie jar is not empty, and the policy has no sensitive data: whose the answer is cannot be known.
    public static let unknownCredentials = CacheMiss(rawValue: "unknownCredentials")
    /// It does not pass the request's checks any more.
    public static let invalid = CacheMiss(.invalid)
    /// It was damaged, and is removed.
    public static let corrupt = CacheMiss(.corrupt)
    /// The disk cannot be read now.
    public static let unavailable = CacheMiss(.unavailable)
    /// The mode was ``CacheMode/reload``.
    public static let reload = CacheMiss(.reload)
    /// No policy, no cache in the configuration, or a body that is read from a file, a form or a stream.
    public static let notConfigured = CacheMiss(.notConfigured)

    /// The word.
    public var description: String { rawValue }
}

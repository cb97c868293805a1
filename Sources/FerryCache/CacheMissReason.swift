/// Why there is no hit.
package enum CacheMissReason: String, Sendable, Hashable, CaseIterable {
    /// Older than allowed, or from the future.
    case expired
    case versionMismatch
    case sensitiveDataMismatch
    case appVersionMismatch
    /// No cache, or none for this.
    case notConfigured
    case notFound
    /// It was damaged, and is gone.
    case corrupt
    /// A header field that the answer varies by is another one.
    case varyMismatch
    /// It does not pass the checks of the request any more.
    case invalid
    /// The store cannot be read.
    case unavailable
    /// Reading was not wanted.
    case reload
}

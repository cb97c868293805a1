import FoundationEssentials

/// The value of the header field `Idempotency-Key`, by which a server recognises a request that it has processed
/// before: it acts on the key once, however often the request comes.
///
/// A request with a key may be retried whatever its method is: see ``RetryPolicy``. Every attempt of a run sends the
/// same key. A field of this name among ``Request/headers`` wins over the key.
public struct IdempotencyKey: Sendable, Hashable, ExpressibleByStringLiteral {
    private let text: String?

    /// A new UUID for each run. Runs that share a transfer (``Request/coalesces``) share that of the first.
    public static let automatic = IdempotencyKey(text: nil)

    /// A key of the application's, the same in every run: for a request that is repeated after a crash, or by another
    /// process.
    public static func value(_ key: String) -> IdempotencyKey { IdempotencyKey(text: key) }

    /// A key of the application's.
    public init(stringLiteral key: String) { text = key }

    private init(text: String?) { self.text = text }

    /// What one run sends.
    func make() -> String { text ?? UUID().uuidString }
}

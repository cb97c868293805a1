/// A redirect that was followed, without secrets: of the values of a query nothing is kept.
public struct Redirect: Sendable, Hashable, CustomStringConvertible {
    /// The status that asked for it.
    public let status: Int
    /// The URL that answered, redacted.
    public let source: String
    /// The URL that was asked next, redacted.
    public let target: String

    init(status: Int, source: String, target: String) {
        self.status = status
        self.source = Redaction.url(source)
        self.target = Redaction.url(target)
    }

    /// `302 http://a/x → http://b/y`
    public var description: String { "\(status) \(source) → \(target)" }
}

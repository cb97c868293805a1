/// Why an answer was not kept, although the request's policy asked for it. An open set.
public struct CacheRefusal: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// A word, like `noStore`.
    public let rawValue: String

    /// One of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// `Cache-Control: no-store`, in the answer or in the request.
    public static let noStore = CacheRefusal(rawValue: "noStore")
    /// `Cache-Control: private` or a `Set-Cookie`, and nothing in the request or its policy says whose it is.
    public static let nobodysOwn = CacheRefusal(rawValue: "nobodysOwn")
    /// It was sent with credentials that the request does not show (of an adapter, an authenticator, a credential
    /// provider or a cookie jar), and the policy has no sensitive data. Nor is a response kept that such credentials
    /// led to, by a redirect that dropped them or past a proxy that asked for them.
    public static let unknownCredentials = CacheRefusal(rawValue: "unknownCredentials")
    /// `Vary: *`
    public static let vary = CacheRefusal(rawValue: "vary")
    /// A part (206), or no answer of its own (304).
    public static let partial = CacheRefusal(rawValue: "partial")
    /// Its end is the end of the connection: whether all of it came cannot be known.
    public static let untilClose = CacheRefusal(rawValue: "untilClose")
    /// ``Request/shouldCache(_:)`` said no.
    public static let request = CacheRefusal(rawValue: "request")
    /// Larger than ``CacheConfiguration/maxEntryBytes``.
    public static let tooLarge = CacheRefusal(rawValue: "tooLarge")
    /// The writing queue was full.
    public static let queueFull = CacheRefusal(rawValue: "queueFull")

    /// The word.
    public var description: String { rawValue }
}

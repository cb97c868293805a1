/// The method of a request (RFC 9110, 9): the usual ones by name, and any other token.
///
/// Methods are case-sensitive and sent as they are written. One that is not a token (RFC 9110, 5.6.2) is refused with
/// `invalidRequest(.method)` before anything is sent.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The word as it is sent.
    public let rawValue: String

    /// Makes a method of any word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Makes a method of any word.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// Makes a method of a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// Asks for a representation.
    public static var get: HTTPMethod { HTTPMethod("GET") }
    /// Asks for what GET would answer, without the body.
    public static var head: HTTPMethod { HTTPMethod("HEAD") }
    /// Hands data to a resource.
    public static var post: HTTPMethod { HTTPMethod("POST") }
    /// Replaces a resource.
    public static var put: HTTPMethod { HTTPMethod("PUT") }
    /// Changes part of a resource (RFC 5789).
    public static var patch: HTTPMethod { HTTPMethod("PATCH") }
    /// Removes a resource.
    public static var delete: HTTPMethod { HTTPMethod("DELETE") }
    /// Asks what may be done.
    public static var options: HTTPMethod { HTTPMethod("OPTIONS") }

    /// The word as it is sent.
    public var description: String { rawValue }

    /// Whether doing it twice is meant to be the same as once (RFC 9110, 9.2.2); a word unknown here is not.
    public var isIdempotent: Bool {
        switch rawValue {
        case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// Where arguments go when the request does not say: into the query of these, into the body of the others.
    var carriesArgumentsInQuery: Bool {
        switch rawValue {
        case "GET", "HEAD", "DELETE": true
        default: false
        }
    }

    /// A body is expected: without one, an empty one is announced.
    var expectsBody: Bool {
        switch rawValue {
        case "POST", "PUT", "PATCH": true
        default: false
        }
    }

    /// Nearly every one is GET, which is not looked at byte by byte.
    var isToken: Bool { self == .get || !rawValue.isEmpty && rawValue.utf8.allSatisfy(ByteSet.token.contains) }
}

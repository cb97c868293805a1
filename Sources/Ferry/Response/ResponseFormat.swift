/// What the body of an answer is taken for, and how it is checked before a value is made of it.
///
/// An open set: a module that can read another format adds a member of its own.
public struct ResponseFormat: Sendable, CustomStringConvertible {
    /// Its name, like `json`.
    public let name: String

    private let check: @Sendable (Response) throws(RequestError) -> Void

    /// A format of one's own. `check` throws for a body that is not of it; it runs where the value is made, and not for
    /// an empty body.
    public init(_ name: String, check: @escaping @Sendable (Response) throws(RequestError) -> Void) {
        self.name = name
        self.check = check
    }

    /// Bytes: nothing is looked at.
    public static let data = ResponseFormat("data") { _ in }

    /// JSON, which is read for a schema, or where the value is made of it: without a schema a value of bytes or text
    /// takes any body.
    public static let json = ResponseFormat("json") { _ in }

    /// Its name.
    public var description: String { name }

    func validate(_ response: Response) throws(RequestError) {
        if response.bodyLength > 0 { try check(response) }
    }
}

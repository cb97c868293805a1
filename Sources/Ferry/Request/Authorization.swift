import FoundationEssentials

/// Credentials sent without waiting for a challenge. An `Authorization` header of the request wins over them.
public struct Authorization: Sendable, Hashable, CustomStringConvertible {
    let value: String

    /// User and password (RFC 7617), as UTF-8.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        Authorization(value: "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }

    /// A token (RFC 6750).
    public static func bearer(_ token: String) -> Authorization {
        Authorization(value: "Bearer " + token)
    }

    /// The scheme; never the secret.
    public var description: String { value.prefix { $0 != " " } + " ***" }
}

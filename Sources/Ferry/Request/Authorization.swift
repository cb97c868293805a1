import FoundationEssentials

/// Credentials of a request. An `Authorization` header of the request wins over them.
public struct Authorization: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// The value of the header field, sent at once.
        case value(String)
        /// Answers the server's challenge.
        case digest(Credential)
    }

    let kind: Kind

    /// User and password (RFC 7617), as UTF-8, sent without waiting for a challenge.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        Authorization(kind: .value("Basic " + Data("\(user):\(password)".utf8).base64EncodedString()))
    }

    /// A token (RFC 6750), sent without waiting for a challenge.
    public static func bearer(_ token: String) -> Authorization {
        Authorization(kind: .value("Bearer " + token))
    }

    /// User and password (RFC 7616), of which only a digest is sent, and that when the server asks for it: each run
    /// takes one more round. A body that can be read once only does not outlive that round.
    public static func digest(_ user: String, _ password: String) -> Authorization {
        Authorization(kind: .digest(Credential(user: user, password: password)))
    }

    /// The header field's value; `nil` when there is none to be sent at once.
    var value: String? { if case .value(let value) = kind { value } else { nil } }

    /// What challenges are answered with; `nil` when there is nothing.
    var digest: Credential? { if case .digest(let credential) = kind { credential } else { nil } }
}

extension Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme; never the secret.
    public var description: String { "\(value?.prefix { $0 != " " } ?? "Digest") ***" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Nothing, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

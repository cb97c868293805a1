/// A user and a password, for a server or a proxy that asks for them. Neither shows in a text made of it.
public struct Credential: Sendable, Hashable {
    /// The user, with a domain before a backslash where the scheme has one (`OFFICE\kim`).
    public let user: String
    /// The password.
    public let password: String

    /// Makes a credential. Neither part may hold a control character (below U+0020, or U+007F), whatever the scheme:
    /// what is to be sent with such a one fails with `invalidRequest`, and nothing is sent.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Whether it can be handed to libcurl: a NUL would end it there, and Digest sends line breaks as they are.
    var isUsable: Bool { ![user, password].contains { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } } }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `Credential(***)`
    public var description: String { "Credential(***)" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Nothing, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A user and a password, for a server or a proxy that asks for them. Neither shows in a text made of it.
public struct Credential: Sendable, Hashable {
    /// The user, with a domain before a backslash where the scheme has one (`OFFICE\kim`).
    public let user: String
    /// The password.
    public let password: String

    /// Makes a credential. Neither part may hold a NUL.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Whether it can be handed to libcurl whole.
    var isUsable: Bool { !user.utf8.contains(0) && !password.utf8.contains(0) }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `Credential(***)`
    public var description: String { "Credential(***)" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Nothing, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// `USER:PASSWORD`. The password may have colons of its own.
struct Credentials: Sendable, Equatable {
    let user: String
    let password: String
}

extension Credentials {
    /// `nil` without a colon.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        self.init(user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
    }
}

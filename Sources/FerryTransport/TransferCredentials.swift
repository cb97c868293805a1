/// What challenges of the server (401) are answered with: the best of the schemes that is asked for.
package struct TransferCredentials: Sendable, Hashable {
    package struct Schemes: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let basic = Schemes(rawValue: 1 << 0)
        package static let digest = Schemes(rawValue: 1 << 1)
        package static let ntlm = Schemes(rawValue: 1 << 2)
        package static let negotiate = Schemes(rawValue: 1 << 3)
    }

    package var user: String
    package var password: String
    package var schemes: Schemes

    package init(user: String, password: String, schemes: Schemes) {
        self.user = user
        self.password = password
        self.schemes = schemes
    }
}

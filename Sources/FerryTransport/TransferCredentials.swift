/// What challenges are answered with: the best of the schemes that is asked for.
package struct TransferCredentials: Sendable, Hashable {
    package struct Schemes: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let basic = Schemes(rawValue: 1 << 0)
        package static let digest = Schemes(rawValue: 1 << 1)
        package static let ntlm = Schemes(rawValue: 1 << 2)
        package static let negotiate = Schemes(rawValue: 1 << 3)
    }

    /// Whose challenges.
    package struct Targets: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// 401
        package static let server = Targets(rawValue: 1 << 0)
        /// 407
        package static let proxy = Targets(rawValue: 1 << 1)
    }

    package var user: String
    package var password: String
    package var schemes: Schemes
    package var targets: Targets

    package init(user: String, password: String, schemes: Schemes, targets: Targets = .server) {
        self.user = user
        self.password = password
        self.schemes = schemes
        self.targets = targets
    }
}

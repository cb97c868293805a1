/// Why a proxy cannot be used: said when the configuration was made, and thrown by each run that needs it.
struct ProxyConfigurationFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence without secrets.
    let description: String

    init(_ description: String) { self.description = description }
}

/// Which header fields are secret.
enum SecretHeaders {
    /// RFC 9110, 11.6.2 and 11.7.2; RFC 6265, 4.
    private static let always = ["Authorization", "Cookie", "Proxy-Authorization"]

    /// Whether the field of this name must not go to other origins; `declared` are names of the application's own.
    static func contains(_ name: String, declared: [String]) -> Bool {
        always.contains { equalNames($0, name) } || declared.contains { equalNames($0, name) }
    }
}

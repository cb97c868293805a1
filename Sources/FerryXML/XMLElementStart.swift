/// The beginning of an element.
public struct XMLElementStart: Sendable, Hashable {
    /// The name without its prefix.
    public let name: String
    /// The URI that the name's prefix, or the default namespace, stands for; nil when there is none.
    public let namespace: String?
    /// The attributes by their names as they are written, prefixes included.
    public let attributes: [String: String]
}

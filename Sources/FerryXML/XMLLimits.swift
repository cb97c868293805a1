/// Bounds for documents of others. What goes beyond one fails with `XMLReadError.Reason`.
public struct XMLLimits: Sendable, Hashable {
    /// Elements within elements. The default is 200; the parser underneath refuses more than 256.
    public var depth = 200
    /// Bytes of the document. The default is 64 MiB.
    public var documentBytes = 64 << 20
    /// Bytes of text and attributes in UTF-8, entities expanded. The default is 64 MiB.
    public var textBytes = 64 << 20

    public init() {}
}

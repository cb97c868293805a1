/// Base, CDN and filters, as ``NetworkAgent/exchangeServers(_:)`` changes them together.
public struct ServerSelection: Sendable {
    /// Where paths are joined to.
    public var baseURL: String?

    /// Where the paths of requests that use the CDN are joined to.
    public var cdnURL: String?

    /// Change every path before it is joined, in their order.
    public var urlFilters: [any URLFilter]
}

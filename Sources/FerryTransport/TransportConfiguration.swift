/// What a transport is made with; fixed for its life.
package struct TransportConfiguration: Sendable, Equatable {
    /// Threads, each with a libuv loop and connections of its own. The default is 1.
    package var loops = 1
    /// Transfers at work at once, over all loops. The default is 1,024.
    package var maxTransfers = 1024
    /// Of these for one scheme, host and port, over all loops. The default is 64.
    package var maxTransfersPerHost = 64
    /// Milliseconds a connection may lie idle. The default is 60,000.
    package var idleConnectionTime: UInt32 = 60_000
    /// PEM bundle of trusted authorities; `nil` is the system's.
    package var authorityFile: String?
    /// `sha256//BASE64`, any of which the server's key must match.
    package var pinnedKeys: [String] = []
    /// Verifies neither chain nor name.
    package var isInsecure = false
    package var userAgent: String?
    /// The `Accept-Encoding` sent; `nil` sends none.
    package var acceptedEncodings: String?

    package init() {}
}

/// A case of the manual's table: what happens to a run, and what Ferry promises.
public struct FaultRow: Sendable {
    /// The number, as at the start of the tests' names.
    public let number: String
    /// What the server, the network, the disk or the caller does.
    public let setup: String
    /// What Ferry does.
    public let promise: String

    init(_ number: String, _ setup: String, _ promise: String) {
        self.number = number
        self.setup = setup
        self.promise = promise
    }

    /// An area of the table.
    public struct Area: Sendable {
        /// Its heading.
        public let title: String
        /// Its cases, in order.
        public let rows: [FaultRow]
        /// Whether its tests need servers that have to be installed.
        public let needsServers: Bool

        init(_ title: String, needsServers: Bool = false, _ rows: [FaultRow]) {
            self.title = title
            self.rows = rows
            self.needsServers = needsServers
        }
    }

    /// All areas.
    public static let areas = [
        framing, bombs, redirects, requests, connections, trust, slowPeers, ends, reuse, engines, http2, downloads,
        cache, tokens, secretsAndGroups,
    ]
}

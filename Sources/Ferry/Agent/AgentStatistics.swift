import FerryTransport

/// Gauges and counters of an agent's network, summed over its loops. Each is exact; together they may differ by a
/// moment.
///
/// A transfer is one exchange: a run with a redirect and a retry has three of them, one that the cache or an
/// interceptor answers has none.
public struct AgentStatistics: Sendable, Hashable {
    /// Transfers that wait for their turn.
    public let waiting: UInt64
    /// Transfers at work; those whose name is being looked up are.
    public let running: UInt64
    /// Transfers taken on since the start.
    public let submitted: UInt64
    /// Transfers answered since the start.
    public let finished: UInt64
    /// Sockets that are open.
    public let sockets: UInt64
    /// Connections opened since the start.
    public let connectionsOpened: UInt64
    /// Names looked up since the start.
    public let lookups: UInt64
    /// Idle connections given up because bytes came that nobody had asked for.
    public let guardedConnections: UInt64
    /// Rounds of the loops since the start.
    public let turns: UInt64
    /// The longest of them: more than a few milliseconds speak of code that blocks on ``NetworkAgent/taskExecutor``.
    public let longestTurn: Duration

    init(_ from: TransportStatistics) {
        waiting = from.waiting
        running = from.running
        submitted = from.submitted
        finished = from.finished
        sockets = from.sockets
        connectionsOpened = from.connectionsOpened
        lookups = from.lookups
        guardedConnections = from.guardedConnections
        turns = from.turns
        longestTurn = .microseconds(Int64(clamping: from.longestTurn))
    }
}

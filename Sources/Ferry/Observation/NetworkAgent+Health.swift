extension NetworkAgent {
    /// How the host of this URL does, as the agent's recent runs say.
    public func health(of url: String) -> HostHealth { core.health.health(of: url) }

    /// How each of the hosts does that the agent talked to recently, 1,024 at most; by `scheme://host:port`.
    public var hostHealth: [String: HostHealth] { core.health.all }

    /// Changes of the health of hosts, from now on.
    public var hostHealthChanges: HostHealthChanges { core.health.changes }
}

extension NetworkAgent {
    /// Where the paths of requests are joined to; at first the configuration's.
    ///
    /// It can be exchanged while the agent runs, on any thread: a request that is started afterwards goes to the new
    /// one, and what was started before stays with the old. A text that is no URL fails the requests that are joined to
    /// it, each with `invalidURL`.
    public var baseURL: String? {
        get { core.builder.servers.baseText }
        set { core.builder.exchangeServers { $0.replacing(base: newValue) } }
    }

    /// Where the paths of requests that use the CDN are joined to; at first the configuration's. It can be exchanged as
    /// ``baseURL`` can.
    public var cdnURL: String? {
        get { core.builder.servers.cdnText }
        set { core.builder.exchangeServers { $0.replacing(cdn: newValue) } }
    }

    /// What changes every path before it is joined, in their order; at first the configuration's. They can be exchanged
    /// as ``baseURL`` can. To add one to those that are there while another thread may do the same, use
    /// ``exchangeServers(_:)``.
    public var urlFilters: [any URLFilter] {
        get { core.builder.servers.filters }
        set { core.builder.exchangeServers { $0.replacing(filters: newValue) } }
    }

    /// Exchanges base, CDN and filters together, so that no request sees some of the new and some of the old.
    ///
    ///     agent.exchangeServers { servers in
    ///         servers.baseURL = "https://staging.example.com"
    ///         servers.urlFilters.append(ArgumentsFilter(["staging": true]))
    ///     }
    ///
    /// Any thread; two that do so at once come one after the other. `change` runs under the lock that every start
    /// takes: it must not block, and not use the agent.
    public func exchangeServers(_ change: (inout ServerSelection) -> Void) {
        core.builder.exchangeServers { servers in
            var selection = ServerSelection(
                baseURL: servers.baseText, cdnURL: servers.cdnText, urlFilters: servers.filters)
            change(&selection)
            return Servers(base: selection.baseURL, cdn: selection.cdnURL, filters: selection.urlFilters)
        }
    }
}

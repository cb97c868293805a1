import FerryTransport

extension NetworkAgent {
    /// Opens connections to the host of a URL ahead of requests, TLS and the tunnel of a proxy included, so that as
    /// many as `count` lie unused. Those that do so already count.
    ///
    ///     try await agent.connect(to: "https://api.example.com", count: 8)
    ///
    /// Not more than ``Limits/maxConcurrentTransfers`` are opened. Returns how many of them there are; throws when
    /// there is none, with the error of the first that failed. The URL is joined to ``baseURL``; its path does not
    /// matter, and nothing is sent to the server. The configuration's timeouts, limits, proxy and address policy count;
    /// adapters, retries and observers have no part in it. Several loops share the connections.
    ///
    /// A connection that nobody uses is closed after ``NetworkConfiguration/idleConnectionTime``. Where libcurl would
    /// carry the request (HTTP/2, an agent that keeps cookies, plain requests through an HTTP proxy), this fails with
    /// `invalidRequest`.
    @discardableResult
    public nonisolated(nonsending) func connect(to url: String, count: Int = 1) async throws(RequestError) -> Int {
        let loops = max(core.transport.clocks.count, 1)
        var runs: [AwaitedRun] = []
        let most = max(core.configuration.limits.maxConcurrentTransfers, 1)
        for index in 0..<min(max(count, 0), most) {
            var built = try core.builder.build(Connect(path: url), at: core.builder.servers)
            built.transfer.connections = UInt32(clamping: index / loops + 1)
            let run = AwaitedRun(url: built.transfer.url, tag: nil)
            core.start(run, built, on: UInt8(index % loops))
            runs.append(run)
        }
        var open = 0
        var error: RequestError?
        for run in runs {
            switch await run.answer(by: core) {
            case .result(let result) where result.succeeded: open += 1
            case .result(let result):
                if let failure = result.failure { error = error ?? RequestError(failure, of: result, url: run.url) }
            case .refused(let refusal): error = error ?? refusal
            case .arrived, .unsent: break
            }
        }
        if open == 0, let error { throw error }
        return open
    }
}

/// What the way to a host is worked out from.
private struct Connect: Request {
    let path: String
}

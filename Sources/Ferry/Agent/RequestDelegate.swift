/// Receives the results of runs; held weakly. Called on the callback queue, once for each run.
public protocol RequestDelegate: AnyObject, Sendable {
    /// The run ended well. The default does nothing.
    func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>)

    /// The run was cancelled or failed. The default does nothing.
    func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError)

    /// A batch or chain ended well. The default does nothing.
    func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value)

    /// A batch or chain was cancelled or failed. The default does nothing.
    func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError)
}

extension RequestDelegate {
    /// Nothing.
    public func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {}

    /// Nothing.
    public func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {}

    /// Nothing.
    public func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value) {}

    /// Nothing.
    public func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError) {}
}

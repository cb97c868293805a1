/// Is told of the life of runs: of every run of an agent, or of those of one request.
///
/// A run is announced once by ``willStart(_:)`` and ended once by ``willStop(_:_:)`` and ``didStop(_:_:)``, cancelled
/// ones included. The methods are called one after another for each run, but for different runs at once: what they
/// change needs a lock. They should be short, as the run waits for them.
public protocol RequestObserver: Sendable {
    /// [caller's thread] A run is about to start; nothing was sent yet.
    func willStart(_ run: RunInfo)

    /// [callback queue, or the caller's task for `await`] The outcome is known; comes before the filters and the
    /// callbacks.
    func willStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task for `await`] The callbacks have returned.
    func didStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task for `await`] What was measured of a run, once for each.
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics)
}

extension RequestObserver {
    /// Nothing.
    public func willStart(_ run: RunInfo) {}
    /// Nothing.
    public func willStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Nothing.
    public func didStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Nothing.
    public func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {}
}

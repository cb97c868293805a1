/// What Ferry says of its runs to a sink, and at which level. An agent without a sink has no `RunLog`: then all of it
/// costs the look whether there is one.
struct RunLog: Sendable {
    let sink: any LogSink
    /// Header fields whose values are not shown, besides those known to be secret.
    var sensitiveHeaders: [String] = []

    func started(_ run: RunInfo) {
        sink.log(.debug, LogEntry(.debug, "started", run: run))
    }

    func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        sink.log(.debug, entry(of: run, outcome, metrics))
    }

    /// It will be sent again, after `delay`, because of this.
    func retrying(_ run: RunInfo, attempt: Int, after code: RequestError.Code, delay: Duration) {
        sink.log(.debug, entry(of: run, attempt: attempt, code: code, delay: delay))
    }

    /// The server sent it elsewhere. `url` is redacted here.
    func redirected(_ run: RunInfo, to url: String, status: Int) {
        sink.log(.debug, entry(of: run, redirectedTo: url, status: status))
    }

    /// After a redirect it is neither the URL nor, perhaps, the method that the run began with. `url` is redacted here.
    func sends(_ run: RunInfo, _ method: HTTPMethod, to url: String, _ headers: @autoclosure () -> Headers) {
        sink.log(.trace, entry(of: run, method, to: url, headers()))
    }

    func received(_ run: RunInfo, status: Int, _ headers: @autoclosure () -> Headers) {
        sink.log(.trace, entry(of: run, received: headers(), status: status))
    }

    private func entry(of run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) -> LogEntry {
        let message =
            switch outcome {
            case .finished(_, isFromCache: true): "finished from the cache"
            case .finished: "finished"
            case .failed: "failed"
            case .cancelled: "cancelled"
            }
        var entry = LogEntry(.debug, message, run: run)
        entry.status = outcome.status
        entry.error = outcome.error?.code
        entry.duration = metrics.total
        if metrics.attempts > 1 { entry.attempt = metrics.attempts }
        return entry
    }

    private func entry(of run: RunInfo, attempt: Int, code: RequestError.Code, delay: Duration) -> LogEntry {
        var entry = LogEntry(.debug, "retrying", run: run)
        entry.attempt = attempt
        entry.error = code
        entry.duration = delay
        return entry
    }

    private func entry(of run: RunInfo, redirectedTo url: String, status: Int) -> LogEntry {
        var entry = LogEntry(.debug, "redirected", run: run.id, url: url)
        entry.method = run.method
        entry.status = status
        return entry
    }

    private func entry(of run: RunInfo, _ method: HTTPMethod, to url: String, _ headers: Headers) -> LogEntry {
        var entry = LogEntry(.trace, "sends", run: run.id, url: url)
        entry.method = method
        entry.setHeaders(headers, sensitive: sensitiveHeaders)
        return entry
    }

    private func entry(of run: RunInfo, received headers: Headers, status: Int) -> LogEntry {
        var entry = LogEntry(.trace, "received", run: run)
        entry.status = status
        entry.setHeaders(headers, sensitive: sensitiveHeaders)
        return entry
    }
}

import FerryTransport

extension AgentCore {
    /// A request that may be retried pays into its host's account.
    private func deposit<R: Request>(_ request: R, url: String) {
        guard builder.mayRetry(request), let host = HostKey(url: url) else { return }
        retryAccounts.deposit(host.authority)
    }

    /// A run begins: who observes it is told. `nil` when nobody does.
    func begin<R: Request>(_ request: R, url: String, number: UInt64? = nil) -> RunWatch? {
        deposit(request, url: url)
        let own = request.observers
        if own.isEmpty && observers.isEmpty && log == nil { return nil }
        let watch = RunWatch(observers + own, log, info(of: request, url: url, number: number))
        watch.willStart()
        return watch
    }

    /// Validates, makes the value, and notes how the host does.
    func processed<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ times: inout ProcessingTimes
    ) -> Result<Reply<R.Value>, RequestError> {
        let reply = builder.processed(request, answer, url: url, &times)
        let asked = if case .arrived(_, let trail) = answer { trail.url } else { url }
        switch reply {
        case .success(let reply): if !reply.isFromCache { health.succeeded(asked) }
        case .failure(let error): health.failed(asked, error)
        }
        return reply
    }

    func info<R: Request>(of request: R, url: String, number: UInt64? = nil) -> RunInfo {
        RunInfo(
            id: number ?? nextNumber, method: request.custom?.method ?? request.method, url: url, tag: request.tag,
            userInfo: request.userInfo)
    }
}

extension RunOutcome {
    init<Value>(_ result: Result<Reply<Value>, RequestError>) {
        switch result {
        case .success(let reply): self = .finished(status: reply.status, isFromCache: reply.isFromCache)
        case .failure(let error): self.init(error)
        }
    }
}

extension Request {
    /// The filters, right before whoever is called back.
    func filter(_ result: Result<Reply<Value>, RequestError>) {
        switch result {
        case .success(let reply): completionFilter(reply)
        case .failure(let error): failureFilter(error)
        }
    }
}

import FerryTransport

extension AgentCore {
    /// Tells the observers of a run that it starts; `nil` when there are none.
    func watch<R: Request>(_ request: R, url: String, number: UInt64? = nil) -> RunWatch? {
        let own = request.observers
        if own.isEmpty && observers.isEmpty { return nil }
        let watch = RunWatch(observers + own, info(of: request, url: url, number: number))
        watch.willStart()
        return watch
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

import FerryTransport

extension AgentCore {
    /// A request that may be retried pays into its host's account when it is sent for the first time.
    func payForRetries(_ url: String) {
        if let host = HostKey(url: url) { retryAccounts.deposit(host.authority) }
    }

    /// A run begins: who observes it is told. `nil` when nobody does.
    func begin<R: Request>(
        _ request: R, url: String, number: UInt64? = nil, in group: GroupRun? = nil
    ) -> RunWatch? {
        let own = request.observers
        if own.isEmpty && observers.isEmpty && log == nil { return nil }
        var runLog = log
        runLog?.sensitiveHeaders = builder.sensitiveHeaders(of: request)
        let watch = RunWatch(observers + own, runLog, info(of: request, url: url, number: number, in: group))
        watch.willStart()
        return watch
    }

    /// Likewise, of a run that travels: what is asked of its request in the caller's thread.
    func beginOutgoing<R: Request>(_ request: R) -> OutgoingStart {
        let servers = builder.servers
        do throws(RequestError) {
            let snapshot = try builder.snapshot(of: request, at: servers)
            let url = snapshot.transfer.url
            return OutgoingStart(
                servers: servers, url: url, watch: begin(request, url: url), snapshot: .success(snapshot))
        } catch {
            return OutgoingStart(
                servers: servers, url: error.url, watch: begin(request, url: error.url), snapshot: .failure(error))
        }
    }

    /// Validates, makes the value, and notes how the host does.
    @inline(__always)
    func reply<R: Request>(
        to request: R, _ answer: Answer, url: String, _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        do throws(RequestError) {
            let reply = try builder.reply(to: request, answer, url: url, &times)
            if reply.response.isFromServer { health.succeeded(reply.response.url) }
            return reply
        } catch {
            note(error, answer, url: url)
            throw error
        }
    }

    /// Notes how the host does, by the way a run ended.
    func note<Value>(_ reply: Result<Reply<Value>, RequestError>, _ answer: Answer, url: String) {
        switch reply {
        case .success(let reply): if reply.response.isFromServer { health.succeeded(reply.response.url) }
        case .failure(let error): note(error, answer, url: url)
        }
    }

    /// What a failure says of the host that was asked last; nothing where it was not asked.
    func note(_ error: RequestError, _ answer: Answer, url: String) {
        if !answer.isIntercepted { health.failed(answer.url ?? url, error) }
    }

    func info<R: Request>(
        of request: R, url: String, number: UInt64? = nil, in group: GroupRun? = nil
    ) -> RunInfo {
        RunInfo(
            id: number ?? nextNumber, method: request.custom?.method ?? request.method, url: url, tag: request.tag,
            userInfo: request.userInfo, group: group?.number)
    }
}

/// What a run begins with that travels from the start.
struct OutgoingStart: Sendable {
    let servers: Servers
    let url: String
    let watch: RunWatch?
    /// The request, or why it cannot be sent.
    let snapshot: Result<RequestSnapshot, RequestError>
}

extension RunOutcome {
    init<Value>(_ result: Result<Reply<Value>, RequestError>) {
        switch result {
        case .success(let reply):
            self = .finished(status: reply.response.status, isFromCache: reply.response.isFromCache)
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

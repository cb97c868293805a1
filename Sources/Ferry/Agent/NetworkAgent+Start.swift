public import Dispatch
import FerryTransport

extension NetworkAgent {
    /// Starts a request; its result comes by `completion`, once, on `queue`, or on the configuration's callback queue
    /// when there is none. A queue of one's own must be serial for callbacks not to overlap.
    ///
    /// The status is checked and the value made on the agent's processing queue.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .closure(completion))
    }

    /// Starts a request; its result goes to `delegate`, once, on `queue`, or on the configuration's callback queue.
    /// The delegate is held weakly: when it is gone, the result goes nowhere.
    @discardableResult
    public func start<R: Request>(
        _ request: R, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .delegate(.init(object: delegate)))
    }

    func start<R: Request>(
        _ request: R, on queue: DispatchQueue?, receiver: RequestRun<R>.Receiver, progress: UploadMeter.Report? = nil,
        mode: CacheMode? = nil, cached: (@Sendable (Reply<R.Value>) -> Void)? = nil
    ) -> RequestTask<R.Value> {
        if mode != nil || core.asksCache(request) {
            return startByCache(request, on: queue, receiver, progress, mode ?? request.cacheMode, cached)
        }
        let queue = queue ?? core.callbackQueue
        let number = core.nextNumber
        let servers = core.builder.servers
        let run: RequestRun<R>
        do throws(RequestError) {
            // A journey builds it anew: what can be read once is left for that.
            let travels = core.travelsFirst(request)
            var built = try core.builder.build(request, at: servers, opensBody: !travels)
            built.transfer.reportsStart = true
            built.meter = UploadMeter(of: built.transfer, on: queue, progress)
            let url = built.transfer.url
            let journey = travels ? Journey(tag: request.tag, of: core) : nil
            run = RequestRun(
                request, url: url, watch: core.begin(request, url: url, number: number), number: number, queue: queue,
                core: core, journey: journey, servers: servers, snapshot: .success(RequestSnapshot(built)),
                receiver: receiver)
            if let journey {
                run.meter = built.meter
                core.handOver(run, to: journey)
            } else {
                core.start(run, built, mayBeRetried: core.builder.mayRetry(request))
            }
        } catch {
            // The same way as any other result.
            run = RequestRun(
                request, url: error.url, watch: core.begin(request, url: error.url, number: number), number: number,
                queue: queue, core: core, servers: servers, receiver: receiver)
            core.refuse(run, error)
        }
        return RequestTask(run: run)
    }
}

import Dispatch
import FerryTransport

extension NetworkAgent {
    /// `start` of a request that the cache or others have a part in.
    func startByCache<R: Request>(
        _ request: R, on queue: DispatchQueue?, _ receiver: RequestRun<R>.Receiver, _ progress: UploadMeter.Report?,
        _ mode: CacheMode, _ cached: (@Sendable (Reply<R.Value>) -> Void)?
    ) -> RequestTask<R.Value> {
        let queue = queue ?? core.callbackQueue
        let number = core.nextNumber
        let servers = core.builder.servers
        func makeRun(
            _ url: String, _ journey: Journey? = nil, _ snapshot: Result<RequestSnapshot, RequestError>? = nil
        ) -> RequestRun<R> {
            RequestRun(
                request, url: url, watch: core.begin(request, url: url, number: number), number: number, queue: queue,
                core: core, journey: journey, servers: servers, snapshot: snapshot, receiver: receiver)
        }
        let target: CacheTarget
        do throws(RequestError) {
            target = try core.builder.cacheTarget(request, at: servers)
        } catch {
            // The same way as any other result.
            let run = makeRun(error.url)
            core.refuse(run, error)
            return RequestTask(run: run)
        }
        let plan = core.plan(for: request, target, mode)
        let caching = RequestRun<R>.Caching(plan: plan, mode: mode, cached: cached)
        if cached == nil, let plan, !core.isClosed, let hit = core.recall(plan, of: request) {
            let run = makeRun(target.url)
            run.caching = caching
            core.answer(run, hit.answer)
            return RequestTask(run: run)
        }
        let journey = Journey(tag: request.tag, of: core)
        // Here, as it may see what only the caller's thread or task has.
        let snapshot = Result { () throws(RequestError) in try core.builder.snapshot(of: request, at: servers) }
        let run = makeRun(target.url, journey, snapshot)
        run.caching = caching
        run.meter = meter(of: request, snapshot, on: queue, progress)
        core.handOver(run, to: journey)
        return RequestTask(run: run)
    }

    /// Counts a body that the run sends itself; what may share its transfer only where somebody is to be told.
    private func meter<R: Request>(
        of request: R, _ snapshot: Result<RequestSnapshot, RequestError>, on queue: DispatchQueue,
        _ progress: UploadMeter.Report?
    ) -> UploadMeter? {
        guard let snapshot = try? snapshot.get(),
            progress != nil || !snapshot.transfer.body.isNone && (!request.coalesces || snapshot.isPulled)
        else { return nil }
        return UploadMeter(of: snapshot.transfer, on: queue, progress)
    }
}

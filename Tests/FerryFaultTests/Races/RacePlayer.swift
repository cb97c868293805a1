import FerrySynchronization
import FerryTesting
import FoundationEssentials

@testable import Ferry
@testable import FerryTestSupport

/// Starts the runs of a round, each in its form.
struct RacePlayer: Sendable {
    let holder: RaceAgent
    let record: RaceRecord
    /// The folder for downloads.
    let folder: String
    let mayShutDown: Bool

    /// Plays one run from its start to its end; no effect if the agent is gone.
    func play(_ run: RaceRun) async {
        guard let agent = holder.agent else { return }
        let token = RaceToken(run, record)
        let delegate = RaceDelegate { token.end(fault(run, $0)) }
        await run.end(by: begin(run, agent, token, delegate))
        await token.wait()
        withExtendedLifetime(delegate) {}
    }

    /// What is wrong with a result.
    private func fault(_ run: RaceRun, _ result: Result<Response, RequestError>) -> String? {
        switch result {
        case .success(let response): run.targets[0].fault(response)
        case .failure(let error): run.fault(error, mayShutDown: mayShutDown)
        }
    }

    /// Starts it, and returns what ends it.
    private func begin(
        _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken, _ delegate: RaceDelegate
    ) -> @Sendable () -> Void {
        let requests = run.targets.map { RaceRequest($0, token, choice: run.choice) }
        switch run.form {
        case .awaited: return send(requests[0], run, agent, token)
        case .shared:
            var request = requests[0]
            request.coalesces = true
            return send(request, run, agent, token)
        case .closure: return start(requests[0], run, agent, token)
        case .delegate:
            let task = agent.start(requests[0], delegate: delegate)
            return { task.cancel() }
        case .stream, .abandonedStream: return stream(requests[0], run, agent, token)
        case .download, .startedDownload: return download(requests[0], run, agent, token)
        case .batch, .startedBatch, .chain, .startedChain:
            return play(RaceGroup(run, requests), run, agent, token)
        case .cached: return send(kept(requests[0], run), run, agent, token)
        case .startedCached: return start(kept(requests[0], run), run, agent, token)
        case .cachedThenNetwork:
            let request = kept(requests[0], run)
            // A result that is delivered twice is filtered twice, the first time before its end.
            let task = agent.start(request, cached: { _ in token.note("cached") }) { result in
                token.end(fault(run, result.map(\.response)))
            }
            return { task.cancel() }
        }
    }

    private func task(
        _ run: RaceRun, _ token: RaceToken, _ body: @escaping @Sendable () async throws(RequestError) -> String?
    ) -> @Sendable () -> Void {
        let task = Task {
            do throws(RequestError) {
                token.end(try await body())
            } catch {
                token.end(run.fault(error, mayShutDown: mayShutDown))
            }
        }
        return { task.cancel() }
    }

    private func kept(_ request: RaceRequest, _ run: RaceRun) -> RaceRequest {
        var request = request
        request.cachePolicy = .timeToLive(.milliseconds(5), write: run.choice % 2 == 0 ? .synchronous : .asynchronous)
        request.isFetchedAgain = run.choice / 2 % 4 == 3
        request.cacheMode =
            switch run.choice / 2 % 4 {
            case 0: .cacheElseNetwork
            case 1: .reload
            case 2: .cacheOnly
            default: .cacheElseNetwork(staleIfError: .seconds(60), staleWhileRevalidate: .seconds(60))
            }
        return request
    }

    private func send(
        _ request: RaceRequest, _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken
    ) -> @Sendable () -> Void {
        task(run, token) { () throws(RequestError) in request.target.fault(try await agent.send(request).response) }
    }

    private func start(
        _ request: RaceRequest, _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken
    ) -> @Sendable () -> Void {
        let task = agent.start(request) { result in token.end(fault(run, result.map(\.response))) }
        return { task.cancel() }
    }

    private func stream(
        _ request: RaceRequest, _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken
    ) -> @Sendable () -> Void {
        task(run, token) { () throws(RequestError) in
            let stream = try await agent.stream(request)
            if run.form == .stream { return request.target.fault(try await stream.body.collect(upTo: 1 << 20)) }
            for try await piece in stream.body where !piece.isEmpty { break }
            return nil
        }
    }

    private func download(
        _ request: RaceRequest, _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken
    ) -> @Sendable () -> Void {
        var options = DownloadOptions(segments: 1 + run.choice % 4)
        options.minimumSegmentSize = 1000
        let path = folder + "/" + run.name!
        if run.form == .download {
            return task(run, token) { [options] () throws(RequestError) in
                let file = try await agent.download(
                    request, to: .file(path), options: options, progress: { _ in token.note("progress") })
                return request.target.fault(fileAt: file.path)
            }
        }
        let task = agent.download(request, to: .file(path), options: options, progress: { _ in token.note("progress") })
        {
            switch $0 {
            case .success(let file): token.end(request.target.fault(fileAt: file.path))
            case .failure(let error): token.end(run.fault(error, mayShutDown: mayShutDown))
            }
        }
        if run.choice % 3 == 0 {
            task.pause()
            task.resume()
        }
        return { task.cancel() }
    }

    private func play(
        _ group: RaceGroup, _ run: RaceRun, _ agent: NetworkAgent, _ token: RaceToken
    ) -> @Sendable () -> Void {
        let chain = group.chain
        if run.form == .batch || run.form == .chain {
            return task(run, token) { () throws(RequestError) in
                try await agent.send(chain) { _ in token.note("progress") }
            }
        }
        let task = agent.start(chain, progress: { _ in token.note("progress") }) { result in
            switch result {
            case .success(let fault): token.end(fault)
            case .failure(let error): token.end(run.fault(error, mayShutDown: mayShutDown))
            }
        }
        return { task.cancel() }
    }
}

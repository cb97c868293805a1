import FerryTransport
import FoundationEssentials
import Synchronization

/// The reading of one body. The last reference to it is the reader's: when that goes, what is left is abandoned.
final class Reading: Sendable {
    /// Where the pieces come from.
    enum Source: Sendable {
        case run(StreamRun)
        /// It was there as a whole, from no network.
        case whole(Data)
    }

    private let source: Source
    private let head: Response
    private let watch: RunWatch?
    private let health: HostHealthTable
    private let isOver = Mutex(false)

    init(_ source: Source, head: Response, watch: RunWatch?, health: HostHealthTable) {
        self.source = source
        self.head = head
        self.watch = watch
        self.health = health
    }

    deinit { abandon(.cancelled) }

    func next() async throws(RequestError) -> Data? {
        switch source {
        case .whole(let data):
            guard stop(finished) else { return nil }
            return data.isEmpty ? nil : data
        case .run(let run):
            switch await run.next() {
            case .chunk(let data): return data
            case .end:
                stop(finished)
                return nil
            case .failure(let error):
                let error = head.trail.map { error.after($0.earlier, $0.redirects) } ?? error
                if stop(RunOutcome(error)) { health.failed(head.url, error) }
                throw error
            }
        }
    }

    /// Gives up a body that is longer than its reader takes.
    func tooLarge(_ limit: Int) -> RequestError {
        let error = RequestError(
            .responseTooLarge, message: "the body is larger than \(limit) bytes", response: head)
        abandon(.failed(error))
        return error
    }

    private var finished: RunOutcome { .finished(status: head.status, isFromCache: head.isFromCache) }

    private func abandon(_ outcome: RunOutcome) {
        guard stop(outcome), case .run(let run) = source else { return }
        let isEncoded = head.headers.contains("Content-Encoding")
        run.abandon(expecting: head.result.contentLength, isEncoded: isEncoded)
    }

    /// Tells the observers, the first time. False afterwards.
    @discardableResult
    private func stop(_ outcome: RunOutcome) -> Bool {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return false }
        guard let watch else { return true }
        if case .run(let run) = source {
            watch.willStop(outcome, run.metrics(head))
        } else {
            watch.willStop(outcome, head.metrics)
        }
        watch.didStop(outcome)
        return true
    }
}

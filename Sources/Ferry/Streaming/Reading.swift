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
    private let ending: StreamEnd
    private let health: HostHealthTable
    private let isOver = Mutex(false)

    init(_ source: Source, head: Response, _ ending: StreamEnd, health: HostHealthTable) {
        self.source = source
        self.head = head
        self.ending = ending
        self.health = health
    }

    deinit { abandon(.cancelled(head.result, url: head.url, trail: head.trail)) }

    func next() async throws(RequestError) -> Data? {
        switch source {
        case .whole(let data):
            guard stop() else { return nil }
            return data.isEmpty ? nil : data
        case .run(let run):
            switch await run.next() {
            case .chunk(let data): return data
            case .end:
                stop()
                return nil
            case .failure(let error):
                let error = error.behind(head)
                if stop(error) { health.failed(head.url, error) }
                throw error
            }
        }
    }

    /// Gives up a body that is longer than its reader takes.
    func tooLarge(_ limit: Int) -> RequestError {
        let error = RequestError(
            .responseTooLarge, message: "the body is larger than \(limit) bytes", response: head)
        abandon(error)
        return error
    }

    private func abandon(_ error: @autoclosure () -> RequestError) {
        guard stop(error()), case .run(let run) = source else { return }
        let isEncoded = head.headers.contains("Content-Encoding")
        run.abandon(expecting: head.result.contentLength, isEncoded: isEncoded)
    }

    /// Tells of the end, the first time; without an error it is a good one. False afterwards.
    @discardableResult
    private func stop(_ error: @autoclosure () -> RequestError? = nil) -> Bool {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return false }
        if let error = error() { ending.failed(error, metrics) } else { ending.finished(head, metrics) }
        return true
    }

    private var metrics: RequestMetrics { if case .run(let run) = source { run.metrics(head) } else { head.metrics } }
}

import FerryTransport
import Synchronization

/// Carries the transfers of a journey whose last answer is streamed.
final class StreamCarrier: Sendable {
    private let current = Mutex<StreamRun?>(nil)
    private let bound: Int?

    /// Without a bound of the request's own none holds: what is not held in memory needs none.
    init(bound: Int?) { self.bound = bound }

    /// The run whose head came last.
    var run: StreamRun? { current.withLock { $0 } }

    /// Makes the run of one transfer, and sets the transfer to be streamed.
    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun {
        built.transfer.responseBody = .stream
        built.transfer.maxBodyBytes = UInt64(bound ?? 0)
        let run = StreamRun(url: built.transfer.url, tag: tag, core: core)
        current.withLock { $0 = run }
        return run
    }

    /// The journey goes on: what comes of this body nobody wants.
    func goOn(from result: TransferResult) {
        current.withLock { $0.take() }?.abandon(expecting: result.contentLength)
    }
}

import FerryTransport
import Synchronization

/// Carries the transfers of a journey whose answer comes in two parts: the head, by which it is known whether it is the
/// last, and then the body.
protocol BodyCarrier: AnyObject, Sendable {
    /// Makes the run of one transfer, and sets the transfer up for it.
    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun

    /// The journey goes on: what comes of this body nobody wants.
    func goOn(from result: TransferResult)

    /// By its head this is the last answer: what else is done before it is delivered.
    func take(_ head: Response, of journey: Journey, by core: AgentCore) async throws(RequestError) -> TakenBody
}

/// What became of a body.
enum TakenBody: Sendable {
    /// It is left for whoever gets the answer.
    case left
    /// It came, or broke off: this is the result of the transfer as a whole.
    case ended(TransferResult)
    /// The request is to be sent again.
    case again
}

/// Carries the transfers of a journey whose last answer is streamed.
final class StreamCarrier: BodyCarrier {
    private let current = Mutex<StreamRun?>(nil)
    private let bound: Int?

    /// Without a bound of the request's own none holds: what is not held in memory needs none.
    init(bound: Int?) { self.bound = bound }

    /// The run whose head came last.
    var run: StreamRun? { current.withLock { $0 } }

    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun {
        built.transfer.responseBody = .stream
        built.transfer.maxBodyBytes = UInt64(bound ?? 0)
        let run = StreamRun(built.transfer, tag: tag, core: core)
        current.withLock { $0 = run }
        return run
    }

    func goOn(from result: TransferResult) {
        current.withLock { $0.take() }?.abandon(expecting: result.contentLength)
    }

    func take(_ head: Response, of journey: Journey, by core: AgentCore) async throws(RequestError) -> TakenBody {
        .left
    }
}

import Dispatch
import FerryTransport

/// The run of one request type: makes its value and calls the closure or the delegate.
///
/// `reply` is written on the processing queue and read on the callback queue, which comes after it.
final class RequestRun<R: Request>: CallbackRun, @unchecked Sendable {
    enum Receiver {
        case closure(@Sendable (Result<Reply<R.Value>, RequestError>) -> Void)
        case delegate(WeakDelegate)
    }

    struct WeakDelegate {
        weak var object: (any RequestDelegate)?
    }

    private let request: R
    private var receiver: Receiver?
    private var reply: Result<Reply<R.Value>, RequestError>?

    init(
        _ request: R, url: String, number: UInt64, queue: DispatchQueue, core: AgentCore, receiver: Receiver
    ) {
        self.request = request
        self.receiver = receiver
        super.init(url: url, tag: request.tag, number: number, queue: queue, core: core)
    }

    override func finish(_ result: TransferResult, _ builder: RequestBuilder) {
        reply = Result { () throws(RequestError) in try builder.reply(to: request, .result(result), url: url) }
    }

    override func fail(_ error: RequestError) { reply = .failure(error) }

    override var end: RunState {
        switch reply {
        case .success: .finished
        case .failure(.cancelled): .cancelled
        case .failure, nil: .failed
        }
    }

    override func callBack() {
        guard let receiver = receiver.take(), let reply = reply.take() else { return }
        switch receiver {
        case .closure(let closure): closure(reply)
        case .delegate(let delegate):
            guard let object = delegate.object else { return }
            let task = RequestTask<R.Value>(run: self)
            switch reply {
            case .success(let reply): object.requestFinished(task, request, reply: reply)
            case .failure(let error): object.requestFailed(task, request, error: error)
            }
        }
    }
}

import Ferry

@testable import FerryTestSupport

/// Gets the result of a run of the race.
final class RaceDelegate: RequestDelegate {
    private let take: @Sendable (Result<Response, RequestError>) -> Void

    init(_ take: @escaping @Sendable (Result<Response, RequestError>) -> Void) { self.take = take }

    func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {
        take(.success(reply.response))
    }

    func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {
        take(.failure(error))
    }
}

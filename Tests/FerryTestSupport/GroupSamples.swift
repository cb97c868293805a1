import Ferry
import FerrySynchronization
import FerryTesting
import Testing

/// A request whose value is the last component of its path, whatever its response.
struct Echo: Request {
    typealias Value = String
    var path: String
    var tag: String?
    var priority = RequestPriority.normal
    var deadline: Duration?
    var observers: [any RequestObserver] = []

    init(_ path: some CustomStringConvertible) { self.path = "/\(path)" }

    func value(from response: Response) throws -> String { String(path.dropFirst()) }
}

/// A request of another type.
struct Count: Request {
    typealias Value = Int
    let number: Int
    var path: String { "/\(number)" }
    func value(from response: Response) throws -> Int { number }
}

extension StubTransport {
    /// Responds with 200, except for these paths.
    convenience init(_ answers: [String: Response]) {
        self.init { request in
            answers[String(request.url.dropFirst("http://h".count))] ?? .response()
        }
    }

    var paths: [String] { requests.map { String($0.url.dropFirst("http://h".count)) } }
}

extension NetworkAgent {
    static func with(_ stub: StubTransport, _ change: (inout NetworkConfiguration) -> Void = { _ in }) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        change(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }
}

/// Records the outcomes of the runs it observes.
final class OutcomeObserver: RequestObserver {
    private let state = Mutex<(started: [RunInfo], outcomes: [RunOutcome])>(([], []))

    var started: [RunInfo] { state.withLock { $0.started } }
    var outcomes: [RunOutcome] { state.withLock { $0.outcomes } }

    func willStart(_ run: RunInfo) { state.withLock { $0.started.append(run) } }
    func didStop(_ run: RunInfo, _ outcome: RunOutcome) { state.withLock { $0.outcomes.append(outcome) } }
}

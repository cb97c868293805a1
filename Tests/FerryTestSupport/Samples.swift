import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials

struct Get: Request {
    var path = "/x"
    var tag: String?
    var priority = RequestPriority.normal

    init(_ path: String = "/x", tag: String? = nil, priority: RequestPriority = .normal) {
        self.path = path
        self.tag = tag
        self.priority = priority
    }
}

/// A request with settable members.
struct Full: Request {
    var path = "/x"
    var baseURL: String?
    var method = HTTPMethod.get
    var headers = Headers()
    var arguments = Arguments()
    var argumentEncoding = ArgumentEncoding.automatic
    var body: RequestBody?
    var authorization: Authorization?
    var timeouts: Timeouts?
    var deadline: Duration?
    var statusValidation: StatusValidation?
}

struct User: Codable, Sendable, Equatable {
    var nick: String
    var level: Int
}

struct UserInfo: Request {
    typealias Value = User
    let id: Int
    var path: String { "/users/\(id)" }
}

struct Oops: Error {}

struct Failing: Request {
    typealias Value = Int
    var path: String { "/failing" }
    func value(from response: Response) throws -> Int { throw Oops() }
}

/// The result of a run of a request.
typealias Outcome<Value: Sendable> = KeptResult<Reply<Value>>

/// Holds the result of a run started with a closure until the test asks for it, and counts the calls.
final class KeptResult<Value: Sendable>: Sendable {
    private struct State {
        var results: [Result<Value, RequestError>] = []
        var waiter: CheckedContinuation<Void, Never>?
    }
    private let state = Mutex(State())

    var count: Int { state.withLock { $0.results.count } }

    var take: @Sendable (Result<Value, RequestError>) -> Void {
        { result in
            self.state.withLock { state in
                state.results.append(result)
                return state.waiter.take()
            }?.resume()
        }
    }

    var result: Result<Value, RequestError> {
        get async {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if !state.results.isEmpty { return true }
                    state.waiter = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
            return state.withLock { $0.results[0] }
        }
    }

    /// The error, if the result is one.
    var error: RequestError? {
        get async { if case .failure(let error) = await result { error } else { nil } }
    }

    var code: RequestError.Code? {
        get async { await error?.code }
    }
}

extension NetworkConfiguration {
    static var test: NetworkConfiguration { NetworkConfiguration(baseURL: "http://h") }
}

func code<T>(_ body: () async throws(RequestError) -> T) async -> RequestError.Code? {
    do throws(RequestError) {
        _ = try await body()
        return nil
    } catch {
        return error.code
    }
}

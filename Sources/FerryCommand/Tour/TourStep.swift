internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FerryTesting

/// One feature; the closure returns a description, or throws.
struct TourStep: Sendable {
    let name: String
    let show: @Sendable (NetworkAgent) async throws -> String

    init(_ name: String, _ show: @escaping @Sendable (NetworkAgent) async throws -> String) {
        self.name = name
        self.show = show
    }

    func result(_ agent: NetworkAgent) async -> TourResult {
        let start = monotonicNanoseconds()
        var result = TourResult(name: name, ok: true, detail: "", nanoseconds: 0)
        do {
            result.detail = try await show(agent)
        } catch {
            result.ok = false
            result.detail = "\(error)"
        }
        result.nanoseconds = monotonicNanoseconds() - start
        return result
    }

    /// Further routes of the server.
    static func prepare(_ server: LoopbackServer) {
        server.handle("GET", "/users/7") { _ in LoopbackResponse(json: #"{"id":7,"nick":"kim","level":3}"#) }
        prepareDownload(server)
    }

    static let all = [
        typedValue, form, basicAuthorization, cacheHit, statusError, timeout, closureAndCancel, download, manyAtOnce,
        onTheLoop, batch, chain, plan,
    ]

    private static let typedValue = TourStep("a typed value") { agent in
        struct User: Decodable, Sendable {
            var nick: String
            var level: Int
        }
        struct UserInfo: Request {
            typealias Value = User
            let id: Int
            var path: String { "/users/\(id)" }
        }
        let reply = try await agent.send(UserInfo(id: 7))
        try expect(reply.value.nick == "kim" && reply.status == 200, "not the user")
        return "GET /users/7: \(reply.value.nick), level \(reply.value.level)"
    }

    private static let form = TourStep("a form") { agent in
        struct Answer: Decodable, Sendable {
            var method: String
            var body: String
        }
        struct SignUp: Request {
            typealias Value = Answer
            var path: String { "/echo" }
            var method: HTTPMethod { .post }
            var arguments: Arguments { ["name": "kim", "tags": ["a"]] }
        }
        let answer = try await agent.send(SignUp()).value
        try expect(answer.body.contains("name=kim"), "the form did not arrive")
        return "\(answer.method) /echo: \(answer.body)"
    }

    private static let basicAuthorization = TourStep("credentials") { agent in
        struct Account: Request {
            var path: String { "/basic-auth/kim/secret" }
            var authorization: Authorization? { .basic("kim", "secret") }
        }
        return "Basic credentials, status \(try await agent.send(Account()).status)"
    }

    private static let statusError = TourStep("a status error") { agent in
        let error = try await failure { () throws(RequestError) in
            try await agent.send(HTTPRequest(.get, "/status/503"))
        }
        try expect(.invalidStatusCode ~= error.code, "\(error)")
        return "\(error.code), \(error.response?.headers.count ?? 0) header fields"
    }

    private static let timeout = TourStep("a timeout") { agent in
        struct Slow: Request {
            var path: String { "/delay/10000" }
            var timeouts: Timeouts? { Timeouts(total: .milliseconds(100)) }
        }
        let error = try await failure { () throws(RequestError) in try await agent.send(Slow()) }
        try expect(.timeout ~= error.code, "\(error)")
        return "\(error.code) in phase \(error.phase)"
    }

    private static let closureAndCancel = TourStep("a cancelled closure") { agent in
        let queue = DispatchQueue(label: "ferry.tour")
        let error: RequestError? = await withCheckedContinuation { continuation in
            let task = agent.start(HTTPRequest(.get, "/delay/10000"), on: queue) { result in
                var failure: RequestError?
                if case .failure(let error) = result { failure = error }
                continuation.resume(returning: failure)
            }
            task.cancel()
        }
        try expect(error?.code == .cancelled, "not cancelled")
        return "one call on the queue, with \(RequestError.Code.cancelled)"
    }

    private static let manyAtOnce = TourStep("100 at once") { agent in
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 {
                group.addTask { try await agent.send(HTTPRequest(.get, "/delay/50")).bodyLength }
            }
            let bytes = try await group.reduce(0, +)
            return "\(bytes) bytes over \(agent.statistics.connectionsOpened) connections"
        }
    }

    private static let onTheLoop = TourStep("tasks on the loop") { agent in
        let count = 1000
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<10 {
                group.addTask(executorPreference: agent.taskExecutor) {
                    for _ in 0..<(count / 10) { try await agent.send(HTTPRequest(.get, "/hello")) }
                }
            }
            try await group.waitForAll()
        }
        return "\(count) requests by 10 tasks on its thread"
    }

    private struct Unexpected: Error, CustomStringConvertible {
        var description: String
    }

    static func expect(_ holds: Bool, _ otherwise: String) throws {
        if !holds { throw Unexpected(description: otherwise) }
    }

    /// The error with which `send` must end.
    static func failure<Value>(of send: () async throws(RequestError) -> Value) async throws -> RequestError {
        do {
            _ = try await send()
        } catch {
            return error
        }
        throw Unexpected(description: "it did not fail")
    }
}

import Ferry
import FerrySynchronization
import FerryTesting

/// Serves `/data` to requests with the current token, and issues the next one at `/token`.
final class TokenServer: Sendable {
    private struct State {
        var valid: String?
        var issued = 0
        var refusal: Int?
    }

    private let server: LoopbackServer
    private let state: Mutex<State>
    /// The response to a refused request.
    private let status: Int

    /// `givesOut` is waited for before a token is issued, `refuses` before a request is refused.
    init(
        on server: LoopbackServer, valid: String? = nil, status: Int = 401,
        givesOut: @escaping @Sendable () async -> Void = {}, refuses: @escaping @Sendable () async -> Void = {}
    ) {
        self.server = server
        self.status = status
        state = Mutex(State(valid: valid))
        server.handle("/data") { [self] request in
            if isValid(request) { return LoopbackResponse(text: "data " + request.text) }
            await refuses()
            return LoopbackResponse(status: status, text: Canary.body)
        }
        server.handle("/token") { [self] _ in
            await givesOut()
            return next()
        }
    }

    /// Its first refusal waits for the gate, and so comes late.
    convenience init(on server: LoopbackServer, firstRefusalWaitsFor gate: Gate) {
        let isFirst = Mutex(true)
        self.init(
            on: server,
            refuses: {
                let waits = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                if waits { await gate.pass() }
            })
    }

    /// One that no server accepts any more.
    static let expired = "canary-old"

    /// The nth token that this server issues.
    static func token(_ number: Int) -> String { "canary-token-\(number)" }

    var issued: Int { state.withLock { $0.issued } }

    /// `/token` responds with this status from here on.
    func refuseTokens(with status: Int?) { state.withLock { $0.refusal = status } }

    /// Revokes the issued tokens.
    func expire() { state.withLock { $0.valid = nil } }

    func count(_ path: String) -> Int { server.requests.count { $0.path == path } }

    func isValid(_ request: LoopbackRequest) -> Bool {
        let sent = [request.headers["Authorization"], request.headers["X-Session"].map { "Bearer " + $0 }]
        return state.withLock { state in state.valid.map { sent.contains("Bearer " + $0) } ?? false }
    }

    private func next() -> LoopbackResponse {
        state.withLock { state in
            if let refusal = state.refusal { return LoopbackResponse(status: refusal, text: Canary.body) }
            state.issued += 1
            let token = Self.token(state.issued)
            state.valid = token
            return LoopbackResponse(text: token)
        }
    }
}

/// Fetches tokens from a ``TokenServer``.
struct Session: Authenticator {
    var token: String?
    var path = "/token"
    /// The field that carries it.
    var field = "Authorization"
    var refusal = 401
    /// What the refresh does before it sends its request.
    var before: @Sendable (String?) async throws -> Void = { _ in }

    func apply(_ token: String, to request: inout OutgoingRequest) {
        request.headers[field] = field == "Authorization" ? "Bearer \(token)" : token
    }

    func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
        try await before(old)
        return try await agent.get(path, as: String.self)
    }

    func isRefused(_ response: Response) -> Bool { response.status == refusal }
}

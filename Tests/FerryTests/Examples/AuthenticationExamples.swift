import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Authentication".
@Suite(.timeLimit(.minutes(1))) struct AuthenticationExamples {
    struct Balance: Request {
        let user: String
        let password: String
        var path: String { "/balance" }
        var authorization: Authorization? { .basic(user, password) }
    }

    struct Login: Request {
        typealias Value = String
        var path: String { "/token" }
        var method: HTTPMethod { .post }
        var usesAuthenticator: Bool { false }  // this request fetches the token
    }

    struct Bearer: Authenticator {
        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            try await agent.send(Login()).value
        }
    }

    struct Vault: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            guard challenge.challenger == .server, challenge.host == "intranet.example.com" else { return nil }
            return Credential(user: "kim", password: try await secret(for: challenge.realm ?? ""))
        }
    }

    struct TraceHeader: RequestAdapter {
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.headers["X-Trace"] = "\(run.id)"
        }
    }

    struct Maintenance: RequestInterceptor {
        func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
            request.url.contains("/orders") ? InterceptedResponse(status: 503, headers: ["Retry-After": "60"]) : nil
        }
    }

    private static func configured(_ baseURL: String) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: baseURL)
        configuration.authenticator = Bearer()
        configuration.refreshLimit = RefreshLimit(maxRefreshes: 1, window: .seconds(30))
        configuration.credentialProvider = Vault()
        configuration.adapters = [TraceHeader()]
        configuration.interceptors = [Maintenance()]
        return configuration
    }

    @Test func tokensAdaptersAndInterceptorsHaveTheirSay() async throws {
        try await withLoopbackServer { server in
            server.handle("POST", "/token") { _ in LoopbackResponse(text: "t0k") }
            let agent = NetworkAgent(configuration: Self.configured(server.baseURL))
            try await agent.send(Get("/hello"))
            #expect(server.requests.last?.headers["Authorization"] == "Bearer t0k")
            #expect(server.requests.last?.headers["X-Trace"] != nil)
            let before = server.requestCount
            #expect(
                await code { () throws(RequestError) in try await agent.send(Get("/orders")) }
                    == .invalidStatusCode(503))
            #expect(server.requestCount == before)
            #expect(Balance(user: "kim", password: "secret").authorization.map { "\($0)" } == "Basic ***")
            await agent.shutdown(grace: .zero)
        }
    }
}

private func secret(for realm: String) async throws -> String { "secret" }

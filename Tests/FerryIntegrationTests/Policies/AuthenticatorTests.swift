import Ferry
import Testing

/// Tokens that a server issues and stops accepting.
@Suite(.timeLimit(.minutes(2))) struct AuthenticatorTests {
    /// Fetches tokens of one series.
    private struct Session: Authenticator {
        let url: String
        let series: String
        var token: String?

        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            try await agent.send(HTTPRequest.to(url + "/token?id=\(series)")).text
        }
    }

    @Test(
        "the first token is fetched once for all waiting runs, and a stale one is refreshed once",
        arguments: [nil, "stale"])
    func onlyOnce(token first: String?) async throws {
        let upstream = try Upstream.shared
        let series = token()
        var configuration = NetworkConfiguration()
        configuration.authenticator = Session(url: upstream.url, series: series, token: first)
        try await withAgent(configuration) { agent in
            try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await agent.send(HTTPRequest.echo(upstream.url + "/bearer?id=\(series)")).value[
                            "Authorization"]
                    }
                }
                for try await sent in group { #expect(sent == "Bearer T1") }
            }
            #expect(try upstream.requests(to: "/token?id=\(series)").count == 1)
        }
    }

    @Test("a token that is replaced on the server is refreshed while runs are in progress")
    func renewed() async throws {
        let upstream = try Upstream.shared
        let series = token()
        var configuration = NetworkConfiguration()
        configuration.authenticator = Session(url: upstream.url, series: series)
        try await withAgent(configuration) { agent in
            let request = HTTPRequest.echo(upstream.url + "/bearer?id=\(series)", .post, body: .string("text"))
            #expect(try await agent.send(request).value["Authorization"] == "Bearer T1")
            // Another client logs in.
            try await withAgent { _ = try await $0.send(HTTPRequest.to(upstream.url + "/token?id=\(series)")) }
            let echo = try await agent.send(request).value
            #expect(echo["Authorization"] == "Bearer T3" && echo.length == 4)
        }
    }
}

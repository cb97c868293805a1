import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Requests from adapters, interceptors and prebuilt ones are checked like all others: rows R42 to R47.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct LateRefusalFaultTests {
    private struct Change: RequestAdapter {
        let change: @Sendable (inout OutgoingRequest) -> Void
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws { change(&request) }
    }

    private struct Complete: Request {
        var path: String { "/never" }
        var prebuiltRequest: OutgoingRequest?
    }

    /// What spoils the request.
    enum Spoiler: CaseIterable, Sendable {
        case adapter, prebuilt
    }

    private func expectRefusal(
        _ code: RequestError.Code, _ spoiler: Spoiler, sourceLocation: SourceLocation = #_sourceLocation,
        _ change: @escaping @Sendable (inout OutgoingRequest) -> Void
    ) async throws {
        // The adapter spoils every request.
        try await withFlow(next: spoiler == .adapter ? .nowhere : .otherServer) {
            if spoiler == .adapter { $0.adapters = [Change(change: change)] }
        } _: { server, agent in
            var outgoing = OutgoingRequest(url: server.baseURL + "/hello")
            if spoiler == .prebuilt { change(&outgoing) }
            let results = try await agent.outcomes(of: Complete(prebuiltRequest: outgoing))
            for result in results {
                let error = try #require(result.error, sourceLocation: sourceLocation)
                #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
                #expect(error.phase == .preparing && error.attempts == 0 && !error.mayHaveBeenProcessed)
                expectNoSecret(in: error, sourceLocation)
            }
            #expect(server.connectionCount == 0, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "R42: a header that would break out of its line", arguments: Spoiler.allCases,
        ["canary\r\nEvil: 1", "canary\n", "a\0b"])
    func headerValue(spoiler: Spoiler, value: String) async throws {
        try await expectRefusal(.invalidRequest(.headerValue), spoiler) { $0.headers.append("X", value) }
        try await expectRefusal(.invalidRequest(.headerName), spoiler) { $0.headers.append("X\r\nEvil", "1") }
        try await expectRefusal(.invalidRequest(.method), spoiler) { $0.method = HTTPMethod("GET /\r\nEvil: 1\r\n") }
        try await expectRefusal(.invalidRequest(.headerValue), spoiler) { $0.body = .bytes([1], contentType: value) }
    }

    @Test(
        "R44: an invalid URL", arguments: Spoiler.allCases,
        ["http://127.0.0.1:1/a\r\nb?token=canary", "http://127.0.0.1:1 /", "http://", "http://canary:canary@/"])
    func url(spoiler: Spoiler, url: String) async throws {
        try await expectRefusal(.invalidURL, spoiler) { $0.url = url }
    }

    @Test(
        "R45: another scheme", arguments: Spoiler.allCases,
        ["file:///etc/passwd", "gopher://127.0.0.1:1/x", "ftp://canary:canary@127.0.0.1:1/", "/no/scheme"])
    func scheme(spoiler: Spoiler, url: String) async throws {
        try await expectRefusal(.unsupportedScheme, spoiler) { $0.url = url }
    }

    @Test("R47: framing that does not match the body", arguments: Spoiler.allCases, ["3", "5", "-4", "four"])
    func framing(spoiler: Spoiler, length: String) async throws {
        try await expectRefusal(.invalidRequest(.framing), spoiler) {
            $0.body = .string("four")
            $0.headers.append("Content-Length", length)
        }
        try await expectRefusal(.invalidRequest(.framing), spoiler) {
            $0.headers.append("Transfer-Encoding", "chunked")
        }
    }

    @Test("R42: an authenticator's token that would break out of its line is refused")
    func token() async throws {
        try await withFlow {
            $0.authenticator = Session(token: "canary\r\nEvil: 1")
        } _: { server, agent in
            for result in await agent.resultsOfBothWays(Get("/hello")) {
                #expect(result.error?.code == .invalidRequest(.headerValue))
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test(
        "R42: a redirect's target does not break out of the request line", arguments: ["/a b", "/\u{fc}\u{1}"])
    func location(location: String) async throws {
        try await withFlow { server, agent in
            server.script(
                path: "/start", [.send(head("302 X", "Location: \(location)\r\nContent-Length: 0\r\n")), .serve])
            for result in await agent.resultsOfBothWays(Get("/start")) {
                let code = try #require(result.error).code
                #expect(
                    [.invalidStatusCode(404), .redirectForbidden(.invalidLocation), .malformedResponse(.header)]
                        .contains(
                            code), "\(code)")
            }
            #expect(server.requests.allSatisfy { !$0.target.contains(" ") && !$0.target.contains("\u{1}") })
        }
    }
}

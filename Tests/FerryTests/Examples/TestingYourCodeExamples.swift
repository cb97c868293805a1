import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The code of the article "Testing your code".
@Suite(.timeLimit(.minutes(1))) struct TestingYourCodeExamples {
    private struct User: Decodable, Sendable { let nick: String }

    private struct UserInfo: Request {
        typealias Value = User
        let id: Int
        var path: String { "/users/\(id)" }
    }

    private func nick(of id: Int, by agent: NetworkAgent) async throws(RequestError) -> String? {
        do throws(RequestError) {
            return try await agent.send(UserInfo(id: id)).value.nick
        } catch {
            if error.is(.invalidStatusCode(404)) { return nil }
            throw error
        }
    }

    @Test func aMissingUserIsNoError() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/users/7") ? .response(body: #"{"nick": "kim"}"#) : .response(status: 404)
        }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://shop.test"), stub: stub)
        #expect(try await nick(of: 7, by: agent) == "kim")
        #expect(try await nick(of: 8, by: agent) == nil)
        #expect(stub.requests.map(\.url) == ["http://shop.test/users/7", "http://shop.test/users/8"])
        await agent.shutdown()
    }

    private let path = #filePath.replacing(".swift", with: ".har")

    @Test func theRecordedServerIsAsked() async throws {
        let stub = StubTransport(har: try HTTPArchive(contentsOf: path))
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://shop.test"), stub: stub)
        #expect(try await nick(of: 7, by: agent) == "kim")
    }

    @Test func aRunThatIsCancelledEndsAtOnce() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://shop.test"), stub: stub)
        let asked = Task { try await nick(of: 7, by: agent) }
        await stub.waitForRequests(1)
        asked.cancel()
        await #expect(throws: RequestError.self) { try await asked.value }
        await agent.shutdown()
    }

    @Test func aResponseThatIsCutShortIsAnError() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/users/7",
                [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"nick\""), .close])
            let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            await #expect(throws: RequestError.self) { _ = try await nick(of: 7, by: agent) }
            #expect(server.requestCount == 1)
            await agent.shutdown()
        }
    }
}

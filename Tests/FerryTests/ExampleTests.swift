import Dispatch
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Code as a reader of the front page would write it.
@Suite struct ExampleTests {
    private struct Profile: Decodable, Sendable {
        var nick: String
        var level: Int
    }

    private struct Fetch: Request {
        typealias Value = Profile
        let id: Int
        var path: String { "/users/\(id)" }
    }

    private struct Rename: Request {
        typealias Value = Void
        let id: Int
        let nick: String
        var path: String { "/users/\(id)" }
        var method: HTTPMethod { .patch }
        var arguments: Arguments { ["nick": .string(nick), "notify": true] }
        var argumentEncoding: ArgumentEncoding { .json }
        var authorization: Authorization? { .bearer("token") }
        var timeouts: Timeouts? { Timeouts(connect: .seconds(2), total: .seconds(10)) }
    }

    @Test func theThreeWaysToAResult() async throws {
        let stub = StubTransport { request in
            switch (request.method, request.url) {
            case (.get, "http://127.0.0.1:8080/users/7"): .response(body: #"{"nick": "kim", "level": 3}"#)
            case (.patch, _): .response(status: 204)
            default: .response(status: 404)
            }
        }
        let agent = NetworkAgent(configuration: .init(baseURL: "http://127.0.0.1:8080"), stub: stub)

        let reply = try await agent.send(Fetch(id: 7))
        #expect(reply.value.nick == "kim" && reply.status == 200)
        try await agent.send(Rename(id: 7, nick: "lee"))
        #expect(stub.requests[1].text == #"{"nick":"lee","notify":true}"#)

        do throws(RequestError) {
            try await agent.send(Fetch(id: 8))
            Issue.record("there is no user 8")
        } catch .invalidStatusCode(404) {
            // The correct type.
        } catch {
            Issue.record("\(error)")
        }

        let outcome = Outcome<Profile>()
        agent.start(Fetch(id: 7), on: DispatchQueue(label: "mine"), completion: outcome.take)
        #expect(try await outcome.result.get().value.level == 3)
        await agent.shutdown()
    }

    @Test func tasksOnTheExecutorOfAStubRunElsewhere() async throws {
        let agent = NetworkAgent(stub: StubTransport(always: .response(body: "x")))
        let task = Task(executorPreference: agent.taskExecutor) {
            let reply = try await agent.send(Get("http://h/x"))
            return reply.text
        }
        #expect(try await task.value == "x")
    }
}

import Dispatch
import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Getting started".
@Suite struct GettingStartedExamples {
    struct Profile: Decodable, Sendable {
        let nick: String
        let level: Int
    }

    struct UserInfo: Request {
        typealias Value = Profile
        let id: Int
        var path: String { "/users/\(id)" }
    }

    final class Screen: RequestDelegate {
        func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {
            if let profile = reply.value as? Profile { print(profile.nick) }
        }

        func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {
            print(error)
        }
    }

    private let queue = DispatchQueue(label: "example")

    private func makeAgent() -> NetworkAgent {
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "https://api.example.com/v1"))
        return agent
    }

    struct NewUser: Encodable, Sendable { let nick: String }

    struct Receipt: Decodable, Sendable { let number: Int }

    private func withoutAType(_ agent: NetworkAgent, _ cart: [String]) async throws -> Int {
        let profile = try await agent.get("/users/7", as: Profile.self)
        try await agent.post("/users", json: NewUser(nick: "kim"))
        var order = HTTPRequest(.post, "/orders", body: .json(cart), as: Receipt.self)
        order.deadline = .seconds(2)
        order.idempotencyKey = .automatic
        let receipt = try await agent.send(order).value
        return profile.level + receipt.number
    }

    @Test func requestsWithoutATypeAreSent() async throws {
        let stub = StubTransport(always: .response(body: #"{"nick": "kim", "level": 3, "number": 4}"#))
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://127.0.0.1"), stub: stub)
        #expect(try await withoutAType(agent, ["a"]) == 7)
        await agent.shutdown()
    }

    private func awaits(_ agent: NetworkAgent) async throws -> Int {
        let reply = try await agent.send(UserInfo(id: 7))
        print(reply.value.nick, reply.status, reply.headers["Date"] ?? "")
        return reply.value.level
    }

    private func starts(_ agent: NetworkAgent) -> RequestTask<Profile> {
        let task = agent.start(UserInfo(id: 7), on: queue) { result in
            switch result {
            case .success(let reply): print(reply.value.nick)
            case .failure(.cancelled): print("never mind")
            case .failure(let error): print(error)
            }
        }
        task.setPriority(.high)
        return task
    }

    private func delegates(_ agent: NetworkAgent, to screen: Screen) {
        agent.start(UserInfo(id: 7), delegate: screen)
    }

    private func matches(_ agent: NetworkAgent) async {
        do throws(RequestError) {
            try await agent.send(UserInfo(id: 7))
        } catch {
            switch error.code {
            case .invalidStatusCode(404): print("no such user")
            case .timeout: print("later")
            default: print(error)  // one line, without secrets
            }
        }
    }

    @Test func allOfThemRunOnAStub() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/users/7")
                ? .response(body: #"{"nick": "kim", "level": 3}"#) : .response(status: 404)
        }
        let tested = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://127.0.0.1"), stub: stub)
        #expect(try await awaits(tested) == 3)
        _ = starts(tested)
        let screen = Screen()
        delegates(tested, to: screen)
        await matches(tested)
        await tested.shutdown(grace: .seconds(60))
        #expect(stub.requests.count == 4)
        let agent = makeAgent()
        #expect(agent.configuration.baseURL == "https://api.example.com/v1")
        await agent.shutdown(grace: .zero)
    }
}

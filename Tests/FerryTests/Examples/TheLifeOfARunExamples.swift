import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "The life of a run".
@Suite struct TheLifeOfARunExamples {
    final class Session: Sendable {
        private let token = Mutex<String?>(nil)
        var current: String? { token.withLock { $0 } }
        func keep(_ new: String) { token.withLock { $0 = new } }
        func forget() { token.withLock { $0 = nil } }
    }

    struct Login: Request {
        typealias Value = String
        let session: Session
        var path: String { "/login" }
        var method: HTTPMethod { .post }

        func completionPreprocessor(_ reply: Reply<String>) { session.keep(reply.value) }
        func willDeliver(_ result: Result<Reply<String>, RequestError>) {
            if case .failure = result { session.forget() }
        }
    }

    private func cancels(_ agent: NetworkAgent) {
        agent.cancelAll(tagged: "profile")
        agent.cancelAll()
    }

    @Test func hooksSeeTheirOwnResults() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/login") ? .response(body: "t0k") : .response(body: #"{"nick": "k", "level": 1}"#)
        }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let session = Session()
        try await agent.send(Login(session: session))
        #expect(session.current == "t0k")
        let count = await Task(executorPreference: agent.taskExecutor) {
            var count = 0
            for id in 1...3 where (try? await agent.send(UserInfo(id: id))) != nil { count += 1 }
            return count
        }.value
        #expect(count == 3)
        cancels(agent)
        await agent.shutdown(grace: .seconds(5))
        await #expect(throws: RequestError.self) { try await agent.send(Login(session: session)) }
        #expect(session.current == nil)
    }
}

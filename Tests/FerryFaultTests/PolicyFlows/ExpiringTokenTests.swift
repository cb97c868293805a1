import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Tokens that are replaced before a server refuses them.
@Suite(.timeLimit(.minutes(1))) struct ExpiringTokenTests {
    /// A token with its expiry, and a source of further ones.
    private struct Expiring: Authenticator {
        struct Token: Sendable {
            var text: String
            var expiration: Date?
        }

        let token: Token?
        let next: @Sendable () async throws -> Token

        func apply(_ token: Token, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer " + token.text
        }

        func refresh(_ old: Token?, with agent: NetworkAgent) async throws -> Token { try await next() }

        func expiration(of token: Token) -> Date? { token.expiration }
    }

    private final class Flag: Sendable {
        private let state = Mutex(false)

        var isSet: Bool {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    private func token(_ text: String, in seconds: Double) -> Expiring.Token {
        Expiring.Token(text: text, expiration: Date.now.addingTimeInterval(seconds))
    }

    /// The `Authorization` fields that were sent, in order.
    private func sent(_ server: LoopbackServer) -> [String] {
        server.requests.map { String(($0.headers["Authorization"] ?? "").dropFirst("Bearer ".count)) }
    }

    private func with(
        _ authenticator: Expiring, limit: RefreshLimit = RefreshLimit(),
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.authenticator = authenticator
        configuration.refreshLimit = limit
        let agent = NetworkAgent(configuration: configuration)
        try await body(server, agent)
        await agent.shutdown()
    }

    @Test func oneThatHasExpiredIsNotSent() async throws {
        let fresh = token("new", in: 3600)
        try await with(Expiring(token: token("old", in: -1)) { fresh }) { server, agent in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<10 { group.addTask { _ = try await agent.get("/hello") } }
                try await group.waitForAll()
            }
            #expect(sent(server) == Array(repeating: "new", count: 10))
        }
    }

    @Test func oneThatExpiresSoonGoesOutWhileTheNextIsFetched() async throws {
        let gate = Gate()
        let fresh = token("new", in: 3600)
        let authenticator = Expiring(token: token("old", in: 20)) {
            await gate.pass()
            return fresh
        }
        try await with(authenticator) { server, agent in
            for _ in 0..<3 { _ = try await agent.get("/hello") }
            #expect(sent(server) == ["old", "old", "old"])
            gate.open()
            repeat { _ = try await agent.get("/hello") } while sent(server).last != "new"
            #expect(Set(sent(server)) == ["old", "new"])
        }
    }

    @Test func whereTheNextCannotBeFetchedTheOldOneGoesOutAsLongAsItIsGood() async throws {
        let fetches = Mutex(0)
        let authenticator = Expiring(token: token("old", in: 20)) {
            fetches.withLock { $0 += 1 }
            throw CancellationError()
        }
        try await with(authenticator) { server, agent in
            for _ in 0..<50 { _ = try await agent.get("/hello") }
            #expect(Set(sent(server)) == ["old"])
        }
        // One in ten seconds.
        #expect((1...2).contains(fetches.withLock { $0 }))
    }

    @Test func oneThatHasExpiredWhenItComesIsSentWhereTheLimitIsReached() async throws {
        let fetches = Mutex(0)
        let old = token("expired", in: -1)
        let authenticator = Expiring(token: old) {
            fetches.withLock { $0 += 1 }
            return old
        }
        try await with(authenticator, limit: RefreshLimit(maxRefreshes: 2, window: .seconds(3600))) { server, agent in
            for _ in 0..<5 { _ = try await agent.get("/hello") }
            #expect(sent(server) == Array(repeating: "expired", count: 5))
        }
        #expect(fetches.withLock { $0 } == 2)
    }

    @Test func oneThatLivesForAShortTimeIsNotReplacedAtOnce() async throws {
        let fetches = Mutex(0)
        let authenticator = Expiring(token: nil) { [self] in
            fetches.withLock { $0 += 1 }
            return token("short", in: 25)
        }
        try await with(authenticator) { server, agent in
            for _ in 0..<5 { _ = try await agent.get("/hello") }
            #expect(sent(server) == Array(repeating: "short", count: 5))
        }
        #expect(fetches.withLock { $0 } == 1)
    }

    @Test func aRefusedTokenThatHasNotExpiredIsReplacedWithinTheLimit() async throws {
        let fetches = Mutex(0)
        let authenticator = Expiring(token: token("first", in: 3600)) { [self] in
            fetches.withLock { $0 += 1 }
            return token("next", in: 3600)
        }
        try await with(authenticator, limit: RefreshLimit(maxRefreshes: 2, window: .seconds(3600))) { server, agent in
            server.handle("/data") { _ in LoopbackResponse(status: 401) }
            for _ in 0..<6 {
                let error = await #expect(throws: RequestError.self) { try await agent.get("/data") }
                #expect(error?.code == .invalidStatusCode(401))
            }
        }
        #expect(fetches.withLock { $0 } == 2)
    }

    @Test func aRefreshedEntryIsStoredBeforeTheShutdownEnds() async throws {
        let gate = Gate()
        let isStored = Flag()
        let isOver = Flag()
        let fresh = token("new", in: 3600)
        let authenticator = Expiring(token: token("old", in: 20)) {
            await gate.pass()
            isStored.isSet = true
            return fresh
        }
        try await with(authenticator) { _, agent in
            _ = try await agent.get("/hello")
            #expect(await eventually(within: .seconds(20)) { gate.arrived == 1 })
            let shutdown = Task {
                await agent.shutdown(grace: .seconds(3600))
                isOver.isSet = true
                return isStored.isSet
            }
            #expect(await eventually(within: .seconds(20)) { agent.core.isClosed })
            #expect(await !eventually(within: .milliseconds(100)) { isOver.isSet })
            gate.open()
            #expect(await shutdown.value)
        }
    }

    @Test func aRefreshThatHangsIsCancelledWithTheGrace() async throws {
        let wasCancelled = Gate()
        let fresh = token("new", in: 3600)
        let authenticator = Expiring(token: token("old", in: 20)) {
            try? await Task.sleep(for: .seconds(3600))
            if Task.isCancelled { wasCancelled.open() }
            return fresh
        }
        try await with(authenticator) { _, agent in
            _ = try await agent.get("/hello")
            await agent.shutdown(grace: .milliseconds(10))
            await wasCancelled.pass()
        }
    }

    @Test func oneThatExpiresAndIsRefusedMeanwhileIsReplacedOnce() async throws {
        let fetches = Mutex(0)
        let gate = Gate()
        let fresh = token("new", in: 3600)
        let authenticator = Expiring(token: token("old", in: 20)) {
            fetches.withLock { $0 += 1 }
            await gate.pass()
            return fresh
        }
        try await with(authenticator) { server, agent in
            server.handle("/data") { request in
                if request.headers["Authorization"] == "Bearer new" { return LoopbackResponse(text: "data") }
                gate.open()
                return LoopbackResponse(status: 401)
            }
            let response = try await agent.get("/data")
            #expect(response.status == 200)
        }
        #expect(fetches.withLock { $0 } == 1)
    }
}

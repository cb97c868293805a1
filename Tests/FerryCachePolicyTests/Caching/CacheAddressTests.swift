import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Where a connection may go, or goes, is part of what a stored response belongs to.
@Suite(.timeLimit(.minutes(1))) struct CacheAddressTests {
    private let bench = CacheBench()

    private struct Addressed: Request {
        typealias Value = String
        var cachePolicy: CachePolicy
        var addressPolicy: AddressPolicy?
        var method = HTTPMethod.get
        var path: String { "/x" }
    }

    static let policies: [CachePolicy] = [
        .timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous),
    ]

    /// What came from an address of the private network must not reach a request for a URL of a stranger.
    @Test(arguments: policies) func aRequestToThePublicInternetGetsNoOtherResponse(policy: CachePolicy) async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]))
        let plain = Addressed(cachePolicy: policy)
        let guarded = Addressed(cachePolicy: policy, addressPolicy: .publicOnly)
        #expect(try await agent.send(plain).value == "answer 1")
        #expect(await fault { try await agent.send(guarded, cache: .cacheOnly) } == .notCached(.notFound))
        #expect(try await agent.send(guarded).value == "answer 2")
        for (request, text) in [(plain, "answer 1"), (guarded, "answer 2")] {
            let reply = try await agent.send(request)
            #expect(reply.isFromCache && reply.value == text)
        }
        await agent.shutdown()
    }

    /// RFC 9111, 4.4: it is the same resource.
    @Test(arguments: [false, true]) func anUnsafeRequestInvalidatesBoth(isGuarded: Bool) async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]))
        let all = [AddressPolicy.any, .publicOnly].map {
            Addressed(cachePolicy: .http(write: .synchronous), addressPolicy: $0)
        }
        for request in all { _ = try await agent.send(request) }
        var post = all[isGuarded ? 1 : 0]
        post.method = .post
        _ = try await agent.send(post)
        for request in all {
            #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.notFound))
        }
        await agent.shutdown()
    }

    /// Behind another socket or address the same URL is that of another server.
    @Test(arguments: policies) func agentsWithOtherServersShareNothing(policy: CachePolicy) async throws {
        let changes: [@Sendable (inout NetworkConfiguration) -> Void] = [
            { _ in }, { $0.unixSocket = "/run/one" }, { $0.unixSocket = "/run/other" },
            { $0.hostOverrides = ["h": ["127.0.0.1"]] }, { $0.hostOverrides = ["h": ["127.0.0.2"]] },
        ]
        for change in changes {
            let agent = bench.agent(counting(["Cache-Control": "max-age=60"]), change)
            #expect(try await agent.send(Addressed(cachePolicy: policy)).isFromCache == false)
            let again = try await agent.send(Addressed(cachePolicy: policy))
            #expect(again.isFromCache)
            await agent.shutdown()
        }
        let agent = bench.agent(counting(), changes[2])
        #expect(try await agent.send(Addressed(cachePolicy: policy)).isFromCache)
        await agent.shutdown()
    }
}

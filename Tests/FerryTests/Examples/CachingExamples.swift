import Ferry
import FerryRedis
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Caching".
@Suite(.timeLimit(.minutes(1))) struct CachingExamples {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path

    struct Prices: Request {
        let shop: String
        var path: String { "/prices/\(shop)" }
        var cachePolicy: CachePolicy { .timeToLive(.seconds(180), version: 2) }
    }

    private func agent(_ base: String) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: base)
        configuration.cache = CacheConfiguration(directory: folder, applicationVersion: "2.4")
        return NetworkAgent(configuration: configuration)
    }

    struct Page: Request {
        let name: String
        var path: String { "/pages/\(name)" }
        var headers: Headers {
            var headers = Headers()
            headers.cacheControl.maxStale = .seconds(60)
            return headers
        }
    }

    @Test func whatTheServerSaysIsObeyed() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/pages/news") { _ in
                LoopbackResponse(headers: ["Cache-Control": "max-age=300"], text: "today")
            }
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration(directory: folder)
            configuration.cachePolicy = .http()
            let agent = NetworkAgent(configuration: configuration)
            let page = try await agent.send(Page(name: "news"))
            print(page.cacheStatus?.description ?? "")  // Ferry; fwd=uri-miss; stored; ttl=300
            let cached = try await agent.send(Page(name: "news"))
            print(cached.cacheStatus?.description ?? "", cached.headers["Age"] ?? "")  // Ferry; hit; ttl=298 2
            #expect(!page.isFromCache && cached.isFromCache && cached.headers["Age"] != nil)
            #expect(server.requests.count == 1)
            await agent.shutdown()
        }
    }

    @Test func aStoreIsNamedByTheConfiguration() throws {
        let password = "secret"
        var configuration = NetworkConfiguration()
        configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 64 << 20) }
        configuration.cache = CacheConfiguration { RedisCacheStorage(RedisConfiguration(host: "cache.internal")) }
        var redis = try RedisConfiguration(url: "redis://:\(password)@cache.internal:6379/0")
        redis.prefix = "shop:"  // processes with the same one share their entries
        configuration.cache = CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        #expect(configuration.cache?.storage?() is RedisCacheStorage)
    }

    @Test func redisHasTLS() throws {
        var redis = try RedisConfiguration(url: "rediss://cache.internal:6380/0")
        redis.tls?.authorityFile = "/etc/shop/redis-authority.pem"  // the default is the system's authorities
        redis.tls?.certificateFile = "/etc/shop/redis-client.pem"
        redis.tls?.keyFile = "/etc/shop/redis-client.key"
        #expect(redis.tls?.verification == .full)
    }

    private func status(_ agent: NetworkAgent) async throws {
        let reply = try await agent.send(Prices(shop: "7"))
        print(reply.cacheStatus?.description ?? "no cache")  // Ferry; hit; ttl=172
    }

    private func modes(_ agent: NetworkAgent, _ prices: Prices) async throws {
        try await agent.send(prices, cache: .reload)  // uses the network, and stores the response
        try await agent.send(prices, cache: .cacheOnly)  // never uses the network: a miss is notCached
        try await agent.send(prices, cache: .cacheElseNetwork(staleIfError: .seconds(3600)))
        try await agent.send(prices, cache: .cacheElseNetwork(staleWhileRevalidate: .seconds(60)))
    }

    private func both(_ agent: NetworkAgent, _ prices: Prices) async throws {
        let now = try await agent.send(prices, cached: { reply in print("so far", reply.text) })
        print("and now", now.text)
        agent.start(
            prices, cached: { reply in print("so far", reply.text) },
            completion: { result in print("and now", (try? result.get())?.text ?? "nothing new") })
    }

    private func byHand(_ agent: NetworkAgent, _ prices: Prices) async throws {
        let kept = try await agent.cache.reply(for: prices)  // or notCached, which says why
        await agent.cache.save(kept.response, for: Prices(shop: "8"))
        await agent.cache.remove(prices)
        await agent.cache.removeAll()
        print(await agent.cache.statistics.hits)
    }

    @Test func whatIsKeptAnswersTheNext() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/prices/7") { _ in LoopbackResponse(json: "[1]") }
            server.handle("/search") { _ in LoopbackResponse(json: "[2]") }
            let agent = agent(server.baseURL)
            let first = try await agent.send(Prices(shop: "7"))
            let again = try await agent.send(Prices(shop: "7"))
            print(again.isFromCache, again.response.age ?? .zero)
            #expect(!first.isFromCache && again.isFromCache)
            try await modes(agent, Prices(shop: "7"))
            try await both(agent, Prices(shop: "7"))
            try await status(agent)
            try await byHand(agent, Prices(shop: "7"))
            try await agent.send(Search(words: "x"))
            #expect(try await agent.send(Search(words: "x")).isFromCache)
            await agent.shutdown()
        }
    }
}

private let account = "kim"
private func trace() -> String { UUID().uuidString }

private struct Search: Request {
    let words: String
    var path: String { "/search" }
    var arguments: Arguments { ["q": .string(words), "trace": .string(trace())] }
    var cacheArguments: Arguments { ["q": .string(words)] }  // not the one that changes each time
    var cacheHeaders: [String] { ["Accept-Language"] }
    var cachePolicy: CachePolicy { .timeToLive(.seconds(60), sensitiveData: account) }
}

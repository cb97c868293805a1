import Ferry
import FerryRedis
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Debian's redis-server with TLS.
@Suite(.timeLimit(.minutes(2))) struct RedisTLSTests {
    private func agent(
        _ server: LoopbackServer, _ port: Int, _ change: (inout RedisConfiguration.TLS) -> Void = { _ in }
    ) throws -> NetworkAgent {
        let certificates = try Certificates.shared
        var redis = RedisConfiguration(host: "localhost", port: port)
        (redis.connectTimeout, redis.timeout, redis.writeTimeout) = (.seconds(20), .seconds(20), .seconds(20))
        redis.minCompressedBytes = nil
        var tls = RedisConfiguration.TLS()
        tls.authorityFile = certificates.authorityFile
        (tls.certificateFile, tls.keyFile) = (certificates.file(.client), certificates.key(.client))
        change(&tls)
        redis.tls = tls
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        return NetworkAgent(configuration: configuration)
    }

    /// Lookups and writes of entries beyond a record, and notifications over the second connection.
    @Test("agents share responses of every size, and removals")
    func sharing() async throws {
        let (redis, port) = try RedisServer.withTLS()
        try await withLoopbackServer { server in
            let (one, other) = (try agent(server, port), try agent(server, port))
            for path in ["/hello", "/bytes/16384", "/bytes/3000000"] {
                try await one.send(stored(path))
                let reply = try await other.send(stored(path))
                #expect(reply.isFromCache, "\(path)")
            }
            #expect(server.requestCount == 3)
            let _: Bool = try await eventually("a hit in memory") {
                _ = try await other.send(stored("/hello"))
                return await other.cache.statistics.memoryHits > 0 ? true : nil
            }
            #expect(await one.cache.remove(stored("/hello")))
            let _: Bool = try await eventually("a miss") {
                try await other.send(stored("/hello")).isFromCache ? nil : true
            }
            for agent in [one, other] {
                #expect(await agent.cache.statistics.faults.isEmpty)
                await agent.shutdown()
            }
        }
        redis.kill()
    }

    @Test(
        "a server that is not trusted gets no entry, and fails no request",
        arguments: [
            Certificates.Name.expired, .wrongName, .untrusted,
        ])
    func untrusted(name: Certificates.Name) async throws {
        let (redis, port) = try RedisServer.withTLS(name)
        try await expectFault(port) { _ in }
        redis.kill()
    }

    @Test("a client without a certificate that the server trusts gets no entry, and fails no request")
    func untrustedClient() async throws {
        let (redis, port) = try RedisServer.withTLS()
        let certificates = try Certificates.shared
        try await expectFault(port) { ($0.certificateFile, $0.keyFile) = (nil, nil) }
        try await expectFault(port) {
            ($0.certificateFile, $0.keyFile) = (certificates.file(.stranger), certificates.key(.stranger))
        }
        redis.kill()
    }

    private func expectFault(_ port: Int, _ change: (inout RedisConfiguration.TLS) -> Void) async throws {
        try await withLoopbackServer { server in
            let agent = try agent(server, port, change)
            for path in ["/hello", "/bytes/10"] {
                let reply = try await agent.send(stored(path))
                #expect(reply.response.status == 200 && !reply.isFromCache)
            }
            let statistics = await agent.cache.statistics
            #expect(statistics.faults["tls", default: 0] > 0, "\(statistics.faults)")
            #expect(statistics.faults.count == 1, "\(statistics.faults)")
            await agent.shutdown()
        }
    }

    @Test("the command takes the files of TLS from the URL")
    func command() async throws {
        let (redis, port) = try RedisServer.withTLS()
        let certificates = try Certificates.shared
        let url =
            "rediss://localhost:\(port)/3?cacert=\(certificates.authorityFile)"
            + "&cert=\(certificates.file(.client))&key=\(certificates.key(.client))"
        try await withLoopbackServer { server in
            server.handle("/fresh") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "a") }
            for isCached in [false, true] {
                let outcome = try FerryCommand.run([
                    "fetch", server.baseURL + "/fresh", "--json", "--http-cache", "--cache", url,
                ])
                let report = try #require(try outcome.reports.first)
                #expect(report.ok && report.fromCache == isCached, "\(outcome.output)\(outcome.error)")
            }
            #expect(server.requestCount == 1)
        }
        redis.kill()
    }
}

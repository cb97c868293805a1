import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R115: runs whose first response is not their last, while their agent is shut down.
@Suite(.timeLimit(.minutes(1)), .faultTable) struct ShutdownHopFaultTests {
    /// What precedes the last response.
    enum Hop: CaseIterable {
        case redirect, retry, challenge

        var response: String {
            switch self {
            case .redirect: head("302 Found", "Location: /hop\r\nContent-Length: 0\r\n")
            case .retry: head("503 Service Unavailable", "Content-Length: 0\r\n")
            case .challenge: head("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n")
            }
        }

        var next: String { self == .redirect ? "/hop" : "/first" }
    }

    /// How the run is started.
    enum Start: CaseIterable {
        case awaited, closure, stream, download, downloadByClosure, uploadProgress, kept, keptByClosure, keptAndThen,
            shared, batch, chain
    }

    private struct Known: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            Credential(user: "kim", password: "canary")
        }
    }

    private func text(_ start: Start, of path: String, by agent: NetworkAgent) async throws -> String {
        var kept = Kept(path: path)
        switch start {
        case .awaited: return try await agent.send(Get(path)).text
        case .closure: return try await agent.result(Get(path), .closure).get().text
        case .stream: return String(decoding: try await agent.stream(Get(path)).body.collect(upTo: 10), as: UTF8.self)
        case .download, .downloadByClosure:
            let place = try DownloadPlace()
            if start == .download {
                _ = try await agent.download(Get(path), to: .file(place.target))
            } else {
                let started = StartedDownload()
                agent.download(Get(path), to: .file(place.target), completion: started.take)
                _ = try await started.file()
            }
            return String(decoding: place.bytes, as: UTF8.self)
        case .uploadProgress: return try await agent.send(Get(path), uploadProgress: { _ in }).text
        case .kept: return try await agent.send(kept).value
        case .keptByClosure: return try await agent.result(kept, .closure).get().value
        case .keptAndThen: return try await agent.send(kept, cached: { _ in }).value
        case .shared:
            kept.coalesces = true
            return try await agent.send(kept).value
        case .batch: return try await agent.send(BatchRequest([Get(path)]))[0].text
        case .chain: return try await agent.send(ChainRequest(Get(path))).text
        }
    }

    @Test(
        "R115: a run that is redirected, retried or challenged within the grace ends with its own result",
        arguments: Hop.allCases)
    func hopInTheGrace(hop: Hop) async throws {
        for start in Start.allCases {
            let (server, cache) = (try LoopbackServer(), FaultCache())
            server.script(
                path: "/first", uses: 1, [.expectHead, .mark("sent"), .wait("go"), .send(hop.response), .serve])
            server.script(path: hop.next, [.expectHead, .mark("hop"), .wait("end"), .send(answer("end")), .serve])
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = cache.configuration
            configuration.retryPolicy = .quick
            configuration.credentialProvider = Known()
            let agent = NetworkAgent(configuration: configuration)
            let run = Task { try await text(start, of: "/first", by: agent) }
            try await server.waitForMark("sent")
            let shutdown = Task { await agent.shutdown(grace: .seconds(5)) }
            #expect(await eventually { agent.core.isClosed })
            server.signal("go")
            // If the run is ended instead, there is no second request to wait for.
            let isSent = await eventually { server.requestCount == 2 }
            server.signal("end")
            let found = await Result { try await run.value }
            #expect(isSent && (try? found.get()) == "end", "\(start): \(found)")
            await shutdown.value
            let (transport, core) = (agent.core.transport, agent.core)
            #expect(await eventually { transport.isAtRest && core.isAtRest }, "\(start)")
        }
    }

    @Test("R115: a run whose next hop exceeds the grace is told of the shutdown")
    func hopBeyondTheGrace() async throws {
        for start in Start.allCases {
            let (server, cache) = (try LoopbackServer(), FaultCache())
            server.script(
                path: "/first", [.expectHead, .mark("sent"), .wait("go"), .send(Hop.redirect.response), .serve])
            server.script(path: "/hop", [.expectHead, .mark("hop"), .keepOpen])
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = cache.configuration
            let agent = NetworkAgent(configuration: configuration)
            let run = Task { try await text(start, of: "/first", by: agent) }
            try await server.waitForMark("sent")
            let shutdown = Task { await agent.shutdown(grace: .seconds(3600)) }
            #expect(await eventually { agent.core.isClosed })
            server.signal("go")
            try await server.waitForMark("hop")
            shutdown.cancel()
            await shutdown.value
            let found = await Result { try await run.value }
            #expect(throws: RequestError.self, "\(start)") { try found.get() }
            if case .failure(let error as RequestError) = found { #expect(error.code == .shutdown, "\(start)") }
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

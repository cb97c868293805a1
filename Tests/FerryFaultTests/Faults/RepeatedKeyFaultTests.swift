import FaultTable
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R116: computed values of a request are the same in every attempt of a run.
@Suite(.timeLimit(.minutes(1)), .faultTable) struct RepeatedKeyFaultTests {
    /// Counts how often each member is read.
    final class Reads: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        private let keys = Atomic(0)

        func note(_ member: String) { counts.withLock { $0[member, default: 0] += 1 } }
        var all: [String: Int] { counts.withLock { $0 } }
        var nextKey: String { "key-\(keys.add(1, ordering: .relaxed).newValue)" }
    }

    /// How a run of a test is started.
    enum Caller {
        @TaskLocal static var name = "nobody"
    }

    /// Computes everything again each time it is read.
    struct Charge: Request {
        let reads = Reads()
        var url = "/charge"
        var cachePolicy = CachePolicy.none
        var coalesces = false
        var path: String {
            reads.note("path")
            return url
        }
        var method: HTTPMethod { .post }
        var headers: Headers {
            reads.note("headers")
            return ["Idempotency-Key": reads.nextKey, "X-Caller": Caller.name]
        }
        var arguments: Arguments {
            reads.note("arguments")
            return ["caller": .string(Caller.name)]
        }
        var body: RequestBody? {
            reads.note("body")
            return .string(reads.nextKey + Caller.name)
        }
        var argumentEncoding: ArgumentEncoding { .query }
    }

    enum Start: CaseIterable {
        case awaited, closure, stream, download, downloadByClosure, batch, chain
        case kept, keptByClosure, shared, http, httpByClosure

        /// Whether ``Request/cacheArguments`` are read, which by default reads the arguments again.
        var readsCacheArguments: Bool { [.kept, .keptByClosure, .shared].contains(self) }
    }

    enum Repeat: CaseIterable {
        case response, failure, redirect, token, challenge
    }

    private struct Mark: RequestAdapter {
        let attempts = Reads()
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.headers["X-Attempt"] = attempts.nextKey
        }
    }

    private struct Known: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            Credential(user: "kim", password: "canary")
        }
    }

    private func run(_ start: Start, _ charge: Charge, by agent: NetworkAgent) async throws -> Int {
        var charge = charge
        switch start {
        case .awaited: return try await agent.send(charge).status
        case .closure: return try await agent.result(charge, .closure).get().status
        case .stream: return try await agent.stream(charge).status
        case .download:
            let place = try DownloadPlace()
            return try await agent.download(charge, to: .file(place.target)).status
        case .downloadByClosure:
            let (place, started) = (try DownloadPlace(), StartedDownload())
            agent.download(charge, to: .file(place.target), completion: started.take)
            return try await started.file().status
        case .kept, .keptByClosure:
            charge.cachePolicy = FaultCache.policy
            return try await agent.result(charge, start == .kept ? .awaited : .closure).get().status
        case .http, .httpByClosure:
            charge.cachePolicy = .http()
            return try await agent.result(charge, start == .http ? .awaited : .closure).get().status
        case .shared:
            charge.coalesces = true
            return try await agent.send(charge).status
        case .batch: return try await agent.send(BatchRequest([charge]))[0].status
        case .chain: return try await agent.send(ChainRequest(charge)).status
        }
    }

    @Test(
        "R116: a key that the request computes is the same in every attempt, like everything else",
        arguments: Repeat.allCases, [true, false])
    func sameKey(again: Repeat, hasAdapter: Bool) async throws {
        for start in Start.allCases {
            let (server, cache) = (try LoopbackServer(), FaultCache())
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = cache.configuration
            configuration.retryPolicy = .quick
            if hasAdapter { configuration.adapters = [Mark()] }
            switch again {
            case .response: server.script(path: "/charge", uses: 1, unwanted(503))
            case .failure: server.script(path: "/charge", uses: 1, [.expectBody, .close])
            case .redirect:
                server.handle("/charge") { request in
                    LoopbackResponse(status: 307, headers: ["Location": "/other?\(request.query ?? "")"])
                }
            case .token:
                server.script(path: "/charge", uses: 1, unwanted(401))
                _ = TokenServer(on: server)
                configuration.authenticator = Session(token: TokenServer.expired, field: "X-Session")
            case .challenge:
                server.script(path: "/charge", uses: 1, unwanted(401, "WWW-Authenticate: Basic realm=\"r\"\r\n"))
                configuration.credentialProvider = Known()
            }
            if again != .redirect { server.handle("/charge") { _ in LoopbackResponse(text: "ok") } }
            server.handle("/other") { _ in LoopbackResponse(text: "ok") }
            let agent = NetworkAgent(configuration: configuration)
            let charge = Charge()
            let status = try await Caller.$name.withValue("somebody") { try await run(start, charge, by: agent) }
            await agent.shutdown()
            let sent = server.requests.filter { $0.path != "/token" }
            #expect(status == 200 && sent.count == 2, "\(start)")
            #expect(Set(sent.map { $0.headers["Idempotency-Key"] }).count == 1, "\(start)")
            #expect(Set(sent.map(\.text)).count == 1 && Set(sent.map(\.query)) == ["caller=somebody"], "\(start)")
            #expect(
                sent.allSatisfy { $0.headers["X-Caller"] == "somebody" && $0.text.hasSuffix("somebody") }, "\(start)")
            // The request after a redirect is sent without calling the adapters again.
            if hasAdapter, again != .redirect {
                #expect(Set(sent.map { $0.headers["X-Attempt"] }).count == 2, "\(start)")
            }
            let arguments = start.readsCacheArguments ? 2 : 1
            #expect(charge.reads.all == ["path": 1, "headers": 1, "arguments": arguments, "body": 1], "\(start)")
        }
    }
}

import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The progress of bodies whose runs use the cache, or may share a transfer.
@Suite(.timeLimit(.minutes(1))) struct CachedUploadTests {
    private let bench = CacheBench()
    private let queue = DispatchQueue(label: "ferry.test.uploads")

    private final class Reports: Sendable {
        private let list = Mutex<[UploadProgress]>([])
        var all: [UploadProgress] { list.withLock { $0 } }
        func take(_ progress: UploadProgress) { list.withLock { $0.append(progress) } }
    }

    private func post(_ body: RequestBody?, _ change: (inout Kept) -> Void = { _ in }) -> Kept {
        var post = Kept(path: "/upload", method: .post, body: body)
        change(&post)
        return post
    }

    private func with(_ body: (LoopbackServer, NetworkAgent) async throws -> Void) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        let agent = NetworkAgent(configuration: configuration)
        try await body(server, agent)
        await agent.shutdown()
    }

    @Test func aRunByTheCacheCountsWhatItSends() async throws {
        try await with { server, agent in
            let all = UploadProgress(bytesSent: 3000, bytesToSend: 3000)
            for wants in [true, false] {
                let request = post(.bytes([UInt8](repeating: 7, count: 3000))) { $0.coalesces = !wants }
                let silent = Outcome<String>()
                let task = agent.start(request, cache: .reload, completion: silent.take)
                _ = try await silent.result.get()
                #expect(task.uploadProgress == (wants ? all : nil), "one that may share its transfer is not counted")
            }
            let reports = Reports()
            let told = Outcome<String>()
            let request = post(.bytes([UInt8](repeating: 8, count: 3000)))
            let task = agent.start(
                request, on: queue, uploadProgress: { reports.take($0) }, completion: told.take)
            _ = try await told.result.get()
            #expect(reports.all.last == all && task.uploadProgress == all)
            // A response from the cache sends nothing.
            let hit = Outcome<String>()
            let count = reports.all.count
            let again = agent.start(request, on: queue, uploadProgress: { reports.take($0) }, completion: hit.take)
            #expect(try await hit.result.get().isFromCache)
            #expect(again.uploadProgress == nil && reports.all.count == count)
        }
    }

    @Test func whatHasNoBodyHasNoProgress() async throws {
        try await with { server, agent in
            for body in [nil, RequestBody.bytes([])] {
                let outcome = Outcome<String>()
                let task = agent.start(post(body), cache: .reload, completion: outcome.take)
                _ = try await outcome.result.get()
                #expect(task.uploadProgress == nil)
            }
        }
    }

    @Test func aRunThatIsToTellHowItsBodyLeavesSharesNoTransfer() async throws {
        try await with { server, agent in
            let request = post(.bytes([UInt8](repeating: 9, count: 3000))) {
                ($0.coalesces, $0.cachePolicy) = (true, .none)
            }
            server.script(
                path: "/upload", uses: 1, [.mark("first"), .wait("go"), .expectBody, .send(answer("first")), .serve])
            let first = Outcome<String>()
            agent.start(request, completion: first.take)
            try await server.waitForMark("first")
            let reports = Reports()
            let second = Outcome<String>()
            agent.start(request, on: queue, uploadProgress: { reports.take($0) }, completion: second.take)
            #expect(try await second.result.get().value != "first")
            #expect(reports.all.last == UploadProgress(bytesSent: 3000, bytesToSend: 3000))
            server.signal("go")
            #expect(try await first.result.get().value == "first")
        }
    }
}

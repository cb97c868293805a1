import Foundation
import Testing

@testable import Ferry

/// A cache for the agent of one run, in a directory that is removed with this object: I3 and I6 for stored responses.
final class FaultCache: Sendable {
    private let directory = NSTemporaryDirectory() + "ferry-fault-cache-\(UUID().uuidString)"

    /// Requests that a response be stored, and returns when it is on disk.
    static let policy = CachePolicy.timeToLive(.seconds(600), write: .synchronous)

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Large enough for every response of the cases: a missing one was not too large.
    var configuration: CacheConfiguration {
        var configuration = CacheConfiguration(directory: directory)
        configuration.maxEntryBytes = 64 << 20
        configuration.maxQueuedBytes = 64 << 20
        return configuration
    }

    /// I3: a failed run has stored nothing, and a response that should be stored is. `keeps` is `nil` if either is
    /// right. To be called while the agent still exists.
    func expectNoPart(
        _ outcome: FaultOutcome, of probe: HTTPRequest<Response>, _ play: Play, keeps: Bool?, _ agent: NetworkAgent,
        _ sourceLocation: SourceLocation
    ) async {
        // Streams and downloads are never stored, nor are requests without a policy: the cache was not opened.
        guard play.isKept else {
            #expect(files.isEmpty, "I3: \(files)", sourceLocation: sourceLocation)
            return
        }
        let found: Result<Response, RequestError>
        do throws(RequestError) {
            found = .success(try await agent.cache.reply(for: probe).response)
        } catch {
            found = .failure(error)
        }
        let statistics = await agent.cache.statistics
        if case .success(let answer) = outcome {
            guard let keeps else { return }
            #expect(statistics.entries == (keeps ? 1 : 0), "\(statistics)", sourceLocation: sourceLocation)
            #expect((try? found.get().bytes) == (keeps ? answer.bytes : nil), sourceLocation: sourceLocation)
        } else {
            let counts = [statistics.entries, statistics.memoryEntries, Int(statistics.writes)]
            #expect(counts == [0, 0, 0], "I3: \(statistics)", sourceLocation: sourceLocation)
            // A request that cannot be sent has no key, nor has one whose body is read while it is sent.
            let codes: [RequestError.Code?] = [.notCached(.notFound), .notCached(.notConfigured), outcome.error?.code]
            #expect(codes.contains(found.error?.code), "I3: \(found)", sourceLocation: sourceLocation)
        }
    }

    /// I6: when the agent is gone, the files contain no secret, except in a body that may be stored and has one.
    func expectNoSecret(_ outcome: FaultOutcome, _ sourceLocation: SourceLocation) {
        if case .success(let answer) = outcome, Canary.words.contains(where: answer.text.contains) { return }
        for file in files {
            let bytes = FileManager.default.contents(atPath: directory + "/" + file) ?? Data()
            for word in Canary.words {
                let place = bytes.range(of: Data(word.utf8))
                #expect(place == nil && !file.contains(word), "I6: \(file)", sourceLocation: sourceLocation)
            }
        }
    }

    private var files: [String] { (try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? [] }
}

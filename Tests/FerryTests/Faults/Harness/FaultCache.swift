import Foundation
import Testing

@testable import Ferry

/// A cache for the agent of one run, in a directory that goes with this object: I3 and I6 for what is kept of answers.
final class FaultCache: Sendable {
    private let directory = NSTemporaryDirectory() + "ferry-fault-cache-\(UUID().uuidString)"

    /// What asks for an answer to be kept, and is done when that is on the disk.
    static let policy = CachePolicy.timeToLive(.seconds(600), write: .synchronous)

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// With room for every answer of the cases: what is not kept is not too large for it.
    var configuration: CacheConfiguration {
        var configuration = CacheConfiguration(directory: directory)
        configuration.maxEntryBytes = 64 << 20
        configuration.maxQueuedBytes = 64 << 20
        return configuration
    }

    /// I3: a run that has failed has left nothing, and one that was to be kept is. `keeps` is `nil` where it does not
    /// matter. While the agent is still there.
    func expectNoPart(
        _ outcome: FaultOutcome, of probe: Probe, _ play: Play, keeps: Bool?, _ agent: NetworkAgent,
        _ sourceLocation: SourceLocation
    ) async {
        // Streams and downloads are never kept, nor is what does not ask for it: nobody has opened the cache.
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
            // What cannot be sent has no key, and a body that is read as it goes out has none either.
            let codes: [RequestError.Code?] = [.notCached(.notFound), .notCached(.notConfigured), outcome.error?.code]
            #expect(codes.contains(found.error?.code), "I3: \(found)", sourceLocation: sourceLocation)
        }
    }

    /// I6: when the agent is gone, nothing in the files is a secret. But for a body that may have been kept, and has
    /// one.
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

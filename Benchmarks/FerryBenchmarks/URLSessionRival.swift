internal import FerryMeasurement
internal import Foundation
internal import FoundationNetworking

/// Foundation's client, as its users would use it: one session, one task for each sender, `await`.
enum URLSessionRival {
    static func run(_ load: Load) async throws -> Measurement {
        guard let url = URL(string: load.url) else { throw BenchmarkError("not a URL: \(load.url)") }
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 64
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        let tickets = Tickets(load.total)
        let senders = await withTaskGroup(of: SenderResult.self) { group in
            for _ in 0..<load.concurrency {
                group.addTask { await send(session, url, load.length, tickets) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        stopwatch.finish(&measurement)
        measurement.add(senders)
        session.invalidateAndCancel()
        return measurement
    }

    private static func send(
        _ session: URLSession, _ url: URL, _ length: Int, _ tickets: Tickets
    ) async -> SenderResult {
        var result = SenderResult()
        while tickets.take() {
            let start = monotonicNanoseconds()
            var outcome = SenderResult.Outcome.failed
            if let (data, response) = try? await session.data(from: url) {
                let status = (response as? HTTPURLResponse)?.statusCode
                outcome = status == 200 && data.count == length ? .ok : .wrong
            }
            result.record(outcome, nanoseconds: monotonicNanoseconds() - start)
        }
        return result
    }
}

internal import FerryMeasurement
internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// The load of `ferry bench --compare urlsession`, sent by Foundation's client as its users would use it.
///
/// It is not in the command because Ferry's own binaries do not link FoundationNetworking.
enum URLSessionLoad {
    /// Reads the order as JSON; prints the report as JSON.
    static func run(_ arguments: [String]) async throws {
        guard arguments.count == 1 else { throw BenchmarkError("a load takes one order") }
        let order = try JSONDecoder().decode(RivalOrder.self, from: Data(arguments[0].utf8))
        guard let url = URL(string: order.url) else { throw BenchmarkError("not a URL: \(order.url)") }
        var request = URLRequest(url: url)
        request.httpMethod = order.method
        for index in stride(from: 0, to: order.headers.count - 1, by: 2) {
            request.addValue(order.headers[index + 1], forHTTPHeaderField: order.headers[index])
        }
        // If the parent was ended, nobody reads the report.
        Thread.detachNewThread {
            _ = try? FileHandle.standardInput.readToEnd()
            exit(1)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = order.connections
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        if order.warmUp > 0 { _ = await load(session, request, order.concurrency, nil, order.warmUp) }
        let usage = ProcessUsage.now
        let start = monotonicNanoseconds()
        let tally = await load(session, request, order.concurrency, order.requests, order.seconds)
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        let report = RivalReport(
            name: "URLSession", latencies: tally.latencies, failed: tally.failed, seconds: seconds,
            usage: ProcessUsage.now - usage, memory: ProcessUsage.peakMemory)
        print(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
    }

    private struct Tally: Sendable {
        var latencies = Histogram()
        var failed: UInt64 = 0
    }

    private static func load(
        _ session: URLSession, _ request: URLRequest, _ concurrency: Int, _ requests: Int?, _ seconds: Double?
    ) async -> Tally {
        let tickets = Tickets(requests ?? .max)
        let end = seconds.map { monotonicNanoseconds() + UInt64($0 * 1e9) } ?? .max
        return await withTaskGroup(of: Tally.self) { group in
            for _ in 0..<concurrency {
                group.addTask {
                    var tally = Tally()
                    while tickets.take() && monotonicNanoseconds() < end {
                        let start = monotonicNanoseconds()
                        let answer = try? await session.data(for: request)
                        if let status = (answer?.1 as? HTTPURLResponse)?.statusCode, 200...299 ~= status {
                            tally.latencies.record(monotonicNanoseconds() - start)
                        } else {
                            tally.failed += 1
                        }
                    }
                    return tally
                }
            }
            return await group.reduce(into: Tally()) { sum, tally in
                sum.latencies.add(tally.latencies)
                sum.failed += tally.failed
            }
        }
    }
}

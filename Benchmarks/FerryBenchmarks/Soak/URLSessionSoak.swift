internal import Foundation
internal import FoundationNetworking

/// The part of the mix that Foundation's client can do, for the curves beside Ferry's: whole bodies, and bodies that
/// break off. No task is cancelled: `URLSessionTask.cancel()` waits for the session's queue while it holds the lock of
/// the Swift task, and the queue, resuming that task, waits for the lock (Swift 6.3); within a second everything hangs.
enum URLSessionSoak {
    static func run(url: String, seconds: Double) async throws -> SoakReport {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpMaximumConnectionsPerHost = 64
        var report = SoakReport(client: "URLSession")
        report.descriptorsBefore = SoakSample.now(since: .now, ended: 0).descriptors
        let session = URLSession(configuration: configuration)
        let runner = SoakRunner()
        report.samples = await runner.run(seconds) {
            switch Int.random(in: 0..<8) {
            case 0: await runner.count("cut") { await fails(session, url + "/fault/cut") }
            default:
                let count = Int.random(in: 0...(Bool.random() ? 2000 : SoakBody.largest))
                await runner.count("bytes") { await body(session, url, count) }
            }
        }
        session.invalidateAndCancel()
        report.descriptorsAfter = SoakSample.now(since: .now, ended: 0).descriptors
        report.tallies = runner.counted
        return report
    }

    private static func body(_ session: URLSession, _ url: String, _ count: Int) async -> String? {
        guard let url = URL(string: url + "/bytes/\(count)") else { return "not a URL" }
        do {
            let data = try await session.data(from: url).0
            return data.elementsEqual(SoakBody.pattern.prefix(count)) ? nil : "other bytes"
        } catch {
            return "\(error.localizedDescription)"
        }
    }

    private static func fails(_ session: URLSession, _ url: String) async -> String? {
        guard let url = URL(string: url) else { return "not a URL" }
        return (try? await session.data(from: url)) == nil ? nil : "a body that was cut is a success"
    }
}

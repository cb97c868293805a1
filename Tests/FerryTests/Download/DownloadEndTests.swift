import FerryTesting
import Foundation
import Synchronization
import Testing

@testable import Ferry

/// How downloads end that never come to a file: refused, cancelled, out of time.
@Suite(.timeLimit(.minutes(1))) struct DownloadEndTests {
    private let two: DownloadOptions = {
        var options = DownloadOptions(segments: 2)
        options.leastSegment = 1000
        return options
    }()

    /// Answers a range of ten thousand bytes, or all of them.
    private static func piece(_ request: LoopbackRequest) -> LoopbackResponse {
        let bytes = LoopbackServer.pattern(0..<10_000)
        guard let range = range(request) else { return LoopbackResponse(headers: ["ETag": "\"v\""], body: bytes) }
        return LoopbackResponse(
            status: 206,
            headers: ["ETag": "\"v\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound)/10000"],
            body: Array(bytes[range]))
    }

    private static func range(_ request: LoopbackRequest) -> ClosedRange<Int>? {
        guard let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-"), let first = Int(ends[0]) else {
            return nil
        }
        return first...(ends.count > 1 ? Int(ends[1]) ?? 9_999 : 9_999)
    }

    // MARK: Progress

    @Test func theProgressOfARunThatNeverBeganEnds() async throws {
        let folder = try Folder()
        let target = DownloadTarget.file(folder.file("f"))
        try await withFlow {
            $0.limits.concurrentTransfers = 1
            $0.limits.queueLength = 0
        } _: { server, agent in
            func expectEnd(_ request: Get, _ code: RequestError.Code) async {
                let started = StartedDownload()
                let task = agent.download(request, to: target, completion: started.take)
                if code == .cancelled { task.cancel() }
                for await _ in task.progressUpdates {}
                #expect(await started.error()?.code == code)
                for await progress in task.progressUpdates { #expect(progress.received == 0) }
            }
            await expectEnd(Get("http://[x/"), .invalidURL)
            await expectEnd(Get("/bytes/10"), .cancelled)
            server.script(path: "/f", [.keepOpen])
            let first = StartedDownload()
            let running = agent.download(Get("/f"), to: .file(folder.file("g")), completion: first.take)
            try await server.waitForRequests(1)
            await expectEnd(Get("/bytes/10"), .queueFull)
            running.cancel()
            _ = await first.error()
            await agent.shutdown(grace: .zero)
            await expectEnd(Get("/bytes/10"), .shutdown)
        }
    }
}

import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Observers' reports of streamed runs.
@Suite(.timeLimit(.minutes(2))) struct StreamMetricsTests {
    private final class Figures: RequestObserver {
        private let seen = Mutex<[RequestMetrics]>([])
        var all: [RequestMetrics] { seen.withLock { $0 } }
        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { seen.withLock { $0.append(metrics) } }
    }

    private let held = Duration.milliseconds(200)

    @Test("A stream is measured to the end of its body, however it ends", arguments: [true, false])
    func total(isWhole: Bool) async throws {
        let figures = Figures()
        try await withFlow {
            $0.observers = [figures]
        } _: { server, agent in
            let answer = head("200 OK", "Content-Length: \(isWhole ? 3 : 9)\r\n")
            server.script(path: "/x", [.send(answer), .wait("go"), .send("abc"), .close])
            let response = try await agent.stream(Get())
            #expect(figures.all.isEmpty)
            await agent.pass(held, server)
            server.signal("go")
            var bytes = 0
            #expect((await response.body.failure(into: &bytes) == nil) == isWhole)
            #expect(bytes == 3)
            let metrics = try #require(figures.all.last)
            #expect(metrics.total >= held && metrics.bytesReceived > 3)
            #expect(response.metrics.total < metrics.total, "those of the response are of its head")
        }
    }

    @Test("A stream whose reader leaves is measured until then") func left() async throws {
        let figures = Figures()
        try await withFlow {
            $0.observers = [figures]
        } _: { server, agent in
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 9\r\n") + "abc"), .keepOpen])
            var response: StreamedResponse? = try await agent.stream(Get())
            await agent.pass(held, server)
            #expect(response?.status == 200)
            response = nil
            // The report of the run that timed out came before it.
            #expect(figures.all.count == 2)
            #expect(figures.all.last.map { $0.total >= held } == true)
        }
    }
}

#if Metrics
import CoreMetrics
import Ferry
import FerryMetrics
import FerryTesting
import MetricsTestKit
import Testing

@Suite struct MetricsTests {
    /// Runs of two kinds, against a server; returns its authority.
    private func play(_ observer: MetricsObserver) async throws -> String {
        try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in LoopbackResponse(text: "fine") }
            server.handle("GET", "/gone") { _ in LoopbackResponse(status: 410) }
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.observers = [observer]
            try await withNetworkAgent(configuration: configuration) { agent in
                for _ in 0..<3 { _ = try await agent.get("/x") }
                await #expect(throws: RequestError.self) { _ = try await agent.get("/gone") }
            }
            return "127.0.0.1:\(server.port)"
        }
    }

    @Test func runsAreTimedAndCountedByTheirDimensions() async throws {
        let backend = TestMetrics()
        let host = try await play(MetricsObserver(factory: backend))
        let good = [
            ("http.request.method", "GET"), ("server.address", host), ("http.response.status_code", "200"),
        ]
        let timer = try backend.expectTimer("http.client.request.duration", good)
        #expect(timer.values.count == 3)
        #expect(timer.values.allSatisfy { $0 > 0 })
        #expect(try backend.expectCounter("ferry.runs", good).totalValue == 3)
        #expect(try backend.expectCounter("ferry.attempts", good).totalValue == 3)
        #expect(try backend.expectCounter("ferry.bytes_received", good).totalValue >= 12)
        let bad = [
            ("http.request.method", "GET"), ("server.address", host), ("http.response.status_code", "410"),
            ("error.type", "invalid_status_code"),
        ]
        let counters = backend.counters.filter { $0.label == "ferry.runs" }
        let gone = try #require(
            counters.first { $0.dimensions.contains { $0 == ("http.response.status_code", "410") } })
        #expect(gone.totalValue == 1)
        #expect(gone.dimensions.map(\.0) == bad.map(\.0))
        // As many have ended as were started.
        #expect(try backend.expectMeter("http.client.active_requests").lastValue == 0)
    }

    @Test func beyondTheLimitOfSeriesAllGoToOneMore() async throws {
        let backend = TestMetrics()
        _ = try await play(MetricsObserver(maxSeries: 1, factory: backend))
        #expect(try backend.expectCounter("ferry.runs", [("otel.metric.overflow", "true")]).totalValue == 1)
    }
}
#endif

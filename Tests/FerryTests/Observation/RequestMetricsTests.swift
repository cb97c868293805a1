import FerryTesting
import Testing

@testable import Ferry

@Suite struct RequestMetricsTests {
    @Test func aSecondRequestSaysThatItsConnectionWasKept() async throws {
        try await withLoopbackServer { server in
            try await withNetworkAgent { agent in
                let first = try await agent.send(Get(server.baseURL + "/hello")).metrics
                #expect(!first.isReusedConnection && first.connect != nil)
                let second = try await agent.send(Get(server.baseURL + "/hello")).metrics
                #expect(second.isReusedConnection && second.connect == nil)
                #expect(second.attempts == 1 && second.redirects == 0)
                #expect(second.httpVersion == .http11)
                #expect(second.peer?.address == "127.0.0.1")
                #expect(second.peer.map { server.baseURL.hasSuffix(":\($0.port)") } == true)
                #expect(second.processing == nil && second.cache == nil)
            }
        }
    }

    @Test func thoseOfARunThatNeverLeftAreEmpty() {
        let metrics = RequestMetrics()
        #expect(metrics.attempts == 0 && metrics.bytesSent == 0 && metrics.total == .zero)
        #expect(metrics.peer == nil && metrics.httpVersion == nil && !metrics.isReusedConnection)
    }
}

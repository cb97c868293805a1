import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

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

/// The metrics of runs with more than one attempt.
@Suite(.timeLimit(.minutes(1))) struct AttemptMetricsTests {
    private let size = 100_000

    private func put(_ path: String) -> HTTPRequest<Response> {
        HTTPRequest(.put, path, body: .bytes(LoopbackServer.pattern(0..<size)))
    }

    @Test("The bytes of all attempts and redirects are counted", arguments: Way.allCases)
    func bytes(way: Way) async throws {
        let recorder = MetricsRecorder()
        try await withFlow {
            $0.observers = [recorder]
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/x", unwanted(307, "Location: /y\r\n"))
            server.script(path: "/y", uses: 1, unwanted(503))
            server.script(path: "/y", [.expectBody, .send(head("200 OK", "Content-Length: 3\r\n") + "abc"), .serve])
            let metrics = try await agent.result(put("/x"), way).get().metrics
            #expect(metrics.attempts == 2 && metrics.redirects == 1)
            #expect(metrics.bytesSent > 3 * size && metrics.bytesReceived > 3 * head("200 X").utf8.count)
            await agent.shutdown()
            #expect(recorder.snapshot.bytesSent == metrics.bytesSent)
            #expect(recorder.snapshot.bytesReceived == metrics.bytesReceived)
        }
    }

    @Test("So are those of runs that fail", arguments: [true, false])
    func bytesOfFailures(isAnswered: Bool) async throws {
        let recorder = MetricsRecorder()
        try await withFlow {
            $0.observers = [recorder]
        } _: { server, agent in
            server.script(path: "/x", unwanted(307, "Location: /y\r\n"))
            server.script(path: "/y", isAnswered ? unwanted(404) : [.expectBody, .close])
            let error = try #require(await agent.result(put("/x")).error)
            #expect(isAnswered == (error.status == 404) && error.attempts >= 2)
            #expect(error.bytesSent > 2 * size && error.bytesReceived > 0)
            #expect(recorder.snapshot.bytesSent == error.bytesSent)
            #expect(recorder.snapshot.bytesReceived == error.bytesReceived)
        }
    }

    @Test("So are those of a run that ends between two attempts") func bytesOfCancelled() async throws {
        let recorder = MetricsRecorder()
        try await withFlow {
            $0.observers = [recorder]
            $0.retryPolicy = .exponential(
                maxAttempts: 2, baseDelay: .seconds(3600), maxDelay: .seconds(3600), jitter: .none)
        } _: { server, agent in
            server.script(path: "/x", unwanted(503))
            let run = Task { await agent.result(put("/x")).error }
            try await server.waitForRequests(1)
            #expect(await eventually { agent.core.state.withLock { $0.resting == 1 && $0.table.count == 0 } })
            run.cancel()
            let error = try #require(await run.value)
            #expect(error.code == .cancelled && error.attempts == 1 && error.bytesSent > size)
            #expect(recorder.snapshot.bytesSent == error.bytesSent)
        }
    }
}

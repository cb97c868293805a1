import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Observers' reports of runs that end without a response of their own.
@Suite(.timeLimit(.minutes(2))) struct FailureMetricsTests {
    private final class Figures: RequestObserver {
        private let seen = Mutex<[RequestMetrics]>([])
        var all: [RequestMetrics] { seen.withLock { $0 } }
        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { seen.withLock { $0.append(metrics) } }
    }

    enum Way: CaseIterable {
        case awaited, closure, streamed
    }

    /// Runs it once, and returns the error and the metrics.
    private func failure(
        _ request: some Request, _ way: Way, _ stub: StubTransport,
        _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        during: (NetworkAgent) async -> Void = { _ in }
    ) async throws -> (RequestError, RequestMetrics) {
        let figures = Figures()
        let recorder = MetricsRecorder()
        var configuration = NetworkConfiguration.test
        configure(&configuration)
        configuration.observers = [figures, recorder]
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let run = Task { () -> RequestError? in
            switch way {
            case .awaited: await agent.result(request, .awaited).error
            case .closure: await agent.result(request, .closure).error
            case .streamed: await agent.streamFailure(request)
            }
        }
        await during(agent)
        let error = try #require(await run.value)
        await agent.shutdown()
        #expect(figures.all.count == 1)
        let metrics = try #require(figures.all.first)
        // A run that was never sent has no latency.
        #expect(recorder.snapshot.latency.count == (error.attempts > 0 ? 1 : 0))
        #expect(recorder.snapshot.requests.started == 1)
        return (error, metrics)
    }

    /// Over a network: the core's measurements.
    private func measured(
        _ path: String, _ way: Way, _ configure: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> (RequestError, RequestMetrics) {
        let figures = Figures()
        var configuration = NetworkConfiguration()
        configure(&configuration)
        configuration.observers = [figures]
        let agent = NetworkAgent(configuration: configuration)
        let error: RequestError? =
            switch way {
            case .awaited: await agent.result(Get(path), .awaited).error
            case .closure: await agent.result(Get(path), .closure).error
            case .streamed: await agent.streamFailure(Get(path))
            }
        await agent.shutdown()
        return (try #require(error), try #require(figures.all.first))
    }

    @Test("A phase that did not end has no time, and each attempt counts", arguments: Way.allCases)
    func phasesThatDidNotEnd(way: Way) async throws {
        for host in ["127.0.0.1", "localhost"] {
            for retries in [1, 3] {
                let (error, metrics) = try await measured("http://\(host):1/", way) {
                    $0.retryPolicy = .exponential(maxAttempts: retries, baseDelay: .milliseconds(1))
                }
                #expect(error.code == .connect(.refused) && error.attempts == retries && metrics.attempts == retries)
                #expect(metrics.connect == nil && metrics.tls == nil && metrics.firstByte == nil, "\(metrics)")
            }
            let server = try LoopbackServer(.init(certificate: try ServerCertificate(.untrusted)))
            let (error, metrics) = try await measured("https://\(host):\(server.port)/", way)
            #expect(error.code.name == "tls" && error.attempts == 1 && metrics.attempts == 1, "\(error)")
            #expect(metrics.tls == nil && metrics.firstByte == nil, "\(metrics)")
            server.stop()
        }
        let (error, metrics) = try await measured("http://x.invalid/", way)
        #expect(error.code == .dns(.notFound) && metrics.attempts == 1)
        #expect(metrics.nameLookup == nil && metrics.connect == nil, "\(metrics)")
    }

    @Test("Redirects that lead nowhere are counted", arguments: Way.allCases)
    func tooManyRedirects(way: Way) async throws {
        let (error, metrics) = try await failure(
            Get(), way, StubTransport(always: .redirect(to: "/y")), { $0.redirectPolicy = .follow(upTo: 2) })
        #expect(error.code == .tooManyRedirects)
        #expect(metrics.redirects == 2 && metrics.attempts == 1 && metrics.total > .zero)
        #expect(metrics.bytesReceived > 0)
    }

    @Test("A rejected status is measured", arguments: Way.allCases)
    func refusedStatus(way: Way) async throws {
        let (error, metrics) = try await failure(Get(), way, StubTransport(always: .response(status: 404)))
        #expect(error.code == .invalidStatusCode(404))
        #expect(metrics.attempts == 1 && metrics.bytesReceived > 0)
    }

    @Test("A run that is cancelled before its second attempt reports the metrics of its first", arguments: Way.allCases)
    func cancelled(way: Way) async throws {
        let count = Mutex(0)
        let second = Gate()
        let adapter = Adapt { _, _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if !isFirst { await second.pass() }
        }
        let (error, metrics) = try await failure(
            Get(), way, StubTransport(always: .response(status: 503)),
            {
                $0.adapters = [adapter]
                $0.retryPolicy = .quick
            },
            during: { agent in
                #expect(await eventually { second.arrived == 1 })
                agent.cancelAll()
            })
        second.open()
        #expect(error.code == .cancelled && error.attempts == 1)
        #expect(metrics.attempts == 1 && metrics.total > .zero)
    }

    @Test("A source that fails is measured up to that point", arguments: Way.allCases)
    func failingSource(way: Way) async throws {
        let call = HTTPRequest(.post, "/x", body: .stream { Pieces(pieces: [Array("abc".utf8)], failsAtEnd: true) })
        let (error, metrics) = try await failure(call, way, StubTransport(always: .response()))
        #expect(error.code == .uploadSource)
        #expect(metrics.attempts == error.attempts && metrics.bytesSent == error.bytesSent)
    }

    @Test("A run that was never sent has no metrics", arguments: Way.allCases)
    func neverLeft(way: Way) async throws {
        let (error, metrics) = try await failure(Get("http://:/"), way, StubTransport(always: .response()))
        #expect(error.code == .invalidURL && metrics.attempts == 0)
        #expect(metrics.total == .zero && metrics.queue == .zero && metrics.bytesSent == 0)
    }
}

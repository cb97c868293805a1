import Ferry
import FerryOTLP
import FerryTesting
import Foundation
import Testing

@testable import FerryTestSupport

/// The code of the article "Watching".
@Suite struct WatchingExamples {
    struct SlowRuns: RequestObserver {
        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
            if metrics.total > .seconds(1) { print("slow:", run, metrics.total, "queue", metrics.queue) }
        }

        func didStop(_ run: RunInfo, _ outcome: RunOutcome) {
            if case .failed(let error) = outcome { print(error) }
        }
    }

    struct Hints: RequestObserver {
        let preload: @Sendable ([String]) -> Void

        func informational(_ run: RunInfo, _ response: InformationalResponse) {
            if response.status == 103 { preload(response.headers.values(of: "Link")) }
        }
    }

    private func printsCommands(_ agent: NetworkAgent) throws -> String {
        print(try agent.curlCommand(for: UserInfo(id: 7)))
        let whole = try agent.curlCommand(for: UserInfo(id: 7), redacted: false)  // runs, secrets and all
        return whole
    }

    private func looksAtHealth(_ agent: NetworkAgent) {
        if case .failing(_, let count, let code) = agent.health(of: "https://api.example.com") {
            print("failed \(count) times, last by \(code)")
        }
    }

    private func listens(to agent: NetworkAgent) async {
        for await change in agent.hostHealthChanges where change.health.isFailing {
            print("\(change.host) is failing")
        }
    }

    private func waits() async {
        for await status in Reachability.shared.changes {
            print(status.isOnline ? "online" : "offline")
        }
    }

    private func recorded(to path: String, _ stub: StubTransport) async throws {
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1")
        let recorder = Recorder()
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(HTTPRequest(.get, "/prices"))
        await agent.shutdown()
        try recorder.archive.write(to: path)
    }

    @Test func theRecordingIsAFile() async throws {
        let path = FileManager.default.temporaryDirectory.path() + "/\(UUID().uuidString).har"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await recorded(to: path, StubTransport(always: .response(body: "7")))
        let archive = try HTTPArchive(contentsOf: path)
        #expect(archive.entries.map(\.request.url) == ["http://127.0.0.1/prices"])
    }

    private func exports(_ configuration: inout NetworkConfiguration) async {
        let exporter = OTLPExporter(OTLPConfiguration(environment: ProcessInfo.processInfo.environment))
        configuration.observers.append(exporter)

        await exporter.shutdown()  // exports what there is
    }

    private func observes(_ configuration: inout NetworkConfiguration) -> OTLPExporter {
        let exporter = OTLPExporter(OTLPConfiguration(serviceName: "shop"))
        configuration.observers.append(exporter)
        return exporter
    }

    private func traced(_ incoming: Headers, _ agent: NetworkAgent) async throws -> Response {
        let context =
            TraceContext(traceparent: incoming["traceparent"], tracestate: incoming["tracestate"]) ?? TraceContext()
        let prices = try await TraceContext.$current.withValue(context) {
            try await agent.get("/prices")
        }
        return prices
    }

    @Test func theTraceGoesOn() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://127.0.0.1"), stub: stub)
        let incoming: Headers = ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        #expect(try await traced(incoming, agent).status == 200)
        #expect(stub.requests[0].headers["traceparent"]?.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") == true)
        await agent.shutdown()
    }

    @Test func allOfItIsThereForTheAsking() async throws {
        var configuration = NetworkConfiguration()
        configuration.observers = [SlowRuns()]
        let recorder = MetricsRecorder()
        configuration.observers.append(recorder)
        configuration.logSink = PrintLogSink()  // one line an entry, to standard error
        configuration.baseURL = "http://h"
        configuration.logSink = nil
        let stub = StubTransport(always: .response(body: #"{"nick": "k", "level": 1}"#))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(UserInfo(id: 7))
        let snapshot = recorder.snapshot
        print(snapshot.requests.inFlight, snapshot.failures, recorder.prometheusText())
        print(agent.statistics.waiting, agent.statistics.connectionsOpened)
        #expect(snapshot.requests.finished == 1)
        #expect(try printsCommands(agent).hasPrefix("curl "))
        looksAtHealth(agent)
        // Each ends when its task is cancelled.
        let listeners = [Task { await listens(to: agent) }, Task { await waits() }]
        for listener in listeners {
            listener.cancel()
            await listener.value
        }
        await agent.shutdown()
    }
}

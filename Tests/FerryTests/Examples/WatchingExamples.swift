import Ferry
import FerryTesting
import FoundationEssentials
import Testing

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

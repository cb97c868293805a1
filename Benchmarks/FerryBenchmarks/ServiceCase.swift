internal import Ferry
internal import FerryMeasurement
internal import FerryOTLP
internal import FerryTesting

/// What a service uses besides requests: server-sent events, the trace context of each request, and the export of
/// traces.
enum ServiceCase {
    static func run(_ server: String) async throws -> Measurement {
        var measurement = Measurement()
        measurement.extra = try await trace(server).merging(export(server)) { first, _ in first }
        measurement.extra["events_per_second"] = try await events()
        return measurement
    }

    // MARK: Events

    private static let events = 100_000

    /// Small events of one stream, from a server on another thread of this process.
    private static func events() async throws -> Double {
        let server = try LoopbackServer()
        let body = (0..<events).map { "id: \($0)\nevent: price\ndata: {\"id\":\($0),\"price\":12.5}\n\n" }.joined()
        server.handle("/events") { _ in
            LoopbackResponse(headers: ["Content-Type": "text/event-stream"], text: body)
        }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        var rates: [Double] = []
        for _ in 0..<3 {
            let start = monotonicNanoseconds()
            var count = 0
            for try await event in agent.events(HTTPRequest(.get, "/events"), reconnection: .none) {
                guard event.event == "price" else { throw BenchmarkError("another event") }
                count += 1
            }
            guard count == events else { throw BenchmarkError("\(count) events") }
            rates.append(Double(count) * 1e9 / Double(monotonicNanoseconds() - start))
        }
        await agent.shutdown()
        return ResultTable.median(rates) ?? .nan
    }

    // MARK: Trace context

    /// The cost of a run with and without a context, in microseconds.
    private static func trace(_ server: String) async throws -> [String: Double] {
        let agent = makeAgent(server)
        let loop = agent.taskExecutor
        let request = Get(path: "/bytes/12")
        let turns = try await Turns(rounds: 101) {
            try await Turns.loopTime(each: 20, loop) { _ = try await agent.send(request) }
        } _: {
            try await TraceContext.$current.withValue(TraceContext()) {
                try await Turns.loopTime(each: 20, loop) { _ = try await agent.send(request) }
            }
        }
        await agent.shutdown()
        let (plain, traced) = turns.medians
        return ["cpu_us_untraced": plain, "cpu_us_traced": traced, "trace_us": turns.difference]
    }

    // MARK: Export

    /// The cost of a run without an exporter, and with one that exports a tenth of the traces to a collector in another
    /// process. The export is part of each round.
    private static func export(_ server: String) async throws -> [String: Double] {
        let collector = try ChildProcess([ownExecutable, "worker", "serve"])
        defer { collector.stop() }
        guard let endpoint = collector.readLine(), endpoint.hasPrefix("http") else {
            throw BenchmarkError("the collector did not start")
        }
        var configuration = OTLPConfiguration(serviceName: "benchmark")
        configuration.endpoint = endpoint
        configuration.sampledFraction = 0.1
        // More than the default: a service does not send 30,000 requests per second through one processor.
        configuration.maxQueuedRuns = 1 << 16
        let exporter = OTLPExporter(configuration)
        let (plain, exporting) = (makeAgent(server), makeAgent(server, exporter))
        let request = Get(path: "/bytes/12")
        let turns = try await Turns(rounds: 21) {
            try await Turns.processTime(each: 100) { _ = try await plain.send(request) }
        } _: {
            try await Turns.processTime(each: 100, exporter.flush) { _ = try await exporting.send(request) }
        }
        await plain.shutdown()
        await exporting.shutdown()
        await exporter.shutdown()
        guard exporter.statistics.exportedSpans > 0, exporter.statistics.failedExports == 0 else {
            throw BenchmarkError("spans were not exported: \(exporter.statistics)")
        }
        let (alone, exported) = turns.medians
        return ["cpu_us_alone": alone, "cpu_us_exported": exported, "exported": turns.ratio]
    }

    private static func makeAgent(_ server: String, _ observer: (any RequestObserver)? = nil) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server)
        if let observer { configuration.observers = [observer] }
        return NetworkAgent(configuration: configuration)
    }
}

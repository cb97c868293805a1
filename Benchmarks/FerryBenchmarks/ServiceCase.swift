internal import Ferry
internal import FerryMeasurement
internal import FerryTesting
internal import Glibc

/// What a service uses besides requests: server-sent events, and the trace context of each request.
enum ServiceCase {
    static func run() async throws -> Measurement {
        var measurement = Measurement()
        measurement.extra["events_per_second"] = try await events()
        let trace = try await trace()
        for (name, figure) in trace { measurement.extra[name] = figure }
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

    /// The cost of a run with and without a context, in microseconds: the median of the differences of adjacent rounds.
    /// All of a run is on the event loop's thread, and only its time counts, not the server's or that of threads that
    /// sleep and wake.
    private static func trace() async throws -> [String: Double] {
        var plain: [Double] = []
        var traced: [Double] = []
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.engine = .automatic
        let agent = NetworkAgent(configuration: configuration)
        _ = try await cpu(agent)
        for round in 0..<21 {
            // Alternates which one is first.
            if round.isMultiple(of: 2) { plain.append(try await cpu(agent)) }
            traced.append(try await TraceContext.$current.withValue(TraceContext()) { try await cpu(agent) })
            if !round.isMultiple(of: 2) { plain.append(try await cpu(agent)) }
        }
        await agent.shutdown()
        let differences = zip(traced, plain).map { $0 - $1 }
        return [
            "cpu_us_untraced": ResultTable.median(plain) ?? .nan, "cpu_us_traced": ResultTable.median(traced) ?? .nan,
            "trace_us": ResultTable.median(differences) ?? .nan,
        ]
    }

    private static func cpu(_ agent: NetworkAgent) async throws -> Double {
        let (atOnce, each) = (64, 100)
        let loop = agent.taskExecutor
        let request = HTTPRequest(.get, "/bytes/12")
        return try await withTaskExecutorPreference(loop) {
            let before = threadNanoseconds()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<atOnce {
                    group.addTask(executorPreference: loop) {
                        for _ in 0..<each { _ = try await agent.send(request) }
                    }
                }
                try await group.waitForAll()
            }
            return Double(threadNanoseconds() - before) / 1000 / Double(atOnce * each)
        }
    }

    /// CPU time of the calling thread.
    private static func threadNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

internal import Ferry
internal import FerryMeasurement
internal import FerryTesting

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

    /// What a run costs with a context and without one, in microseconds. Without a network: its cost hides in the noise
    /// of one.
    private static func trace() async throws -> [String: Double] {
        var plain: [Double] = []
        var traced: [Double] = []
        for _ in 0..<4 {
            plain.append(try await cpu())
            traced.append(try await TraceContext.$current.withValue(TraceContext()) { try await cpu() })
        }
        // The least of each: what is above it is the machine's.
        let (least, most) = (plain.min() ?? .nan, traced.min() ?? .nan)
        return ["cpu_us_untraced": least, "cpu_us_traced": most, "trace_us": most - least]
    }

    private static func cpu() async throws -> Double {
        // One for each figure, as a stub keeps all requests.
        let agent = NetworkAgent(
            configuration: NetworkConfiguration(baseURL: "http://127.0.0.1"),
            stub: StubTransport(always: .response(body: "hello, world")))
        let count = 20_000
        let request = HTTPRequest(.get, "/prices")
        let before = ProcessUsage.now
        for _ in 0..<count { _ = try await agent.send(request) }
        let used = ProcessUsage.now - before
        await agent.shutdown()
        return (used.user + used.system) / Double(count)
    }
}

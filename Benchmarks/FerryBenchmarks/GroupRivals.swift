internal import Ferry
internal import FerryMeasurement

/// The same requests, in batches and in chains.
enum GroupRivals {
    /// Sequential batches of 100, each with all members at once.
    static func batches(_ load: Load) async throws -> Measurement {
        await measure(load, senders: 1) { agent, tickets in
            var result = SenderResult()
            let members = Array(repeating: Get(path: load.path), count: 100)
            while tickets.take(100) {
                let start = monotonicNanoseconds()
                let responses = try? await agent.send(BatchRequest(members))
                let time = (monotonicNanoseconds() - start) / 100
                for index in 0..<100 { result.record(outcome(responses?[index], load), nanoseconds: time) }
            }
            return result
        }
    }

    /// The reference for batches: the same hundred at once, sent alone, and the next hundred when all have ended.
    static func waves(_ load: Load) async throws -> Measurement {
        await measure(load, senders: 1) { agent, tickets in
            var result = SenderResult()
            let request = Get(path: load.path)
            while tickets.take(100) {
                let start = monotonicNanoseconds()
                let responses = await withTaskGroup(of: Response?.self) { group in
                    for _ in 0..<100 { group.addTask { try? await agent.send(request).response } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                let time = (monotonicNanoseconds() - start) / 100
                for response in responses { result.record(outcome(response, load), nanoseconds: time) }
            }
            return result
        }
    }

    /// Chains of 10, as many at once as there are senders.
    static func chains(_ load: Load) async throws -> Measurement {
        await measure(load, senders: load.concurrency) { agent, tickets in
            var result = SenderResult()
            let request = Get(path: load.path)
            var chain = ChainRequest(request)
            for _ in 1..<10 { chain = chain.then { _ in request } }
            while tickets.take(10) {
                let start = monotonicNanoseconds()
                let response = try? await agent.send(chain)
                let time = (monotonicNanoseconds() - start) / 10
                for _ in 0..<10 { result.record(outcome(response, load), nanoseconds: time) }
            }
            return result
        }
    }

    private static func outcome(_ response: Response?, _ load: Load) -> SenderResult.Outcome {
        guard let response else { return .failed }
        return response.status == 200 && response.bodyLength == load.length ? .ok : .wrong
    }

    private static func measure(
        _ load: Load, senders: Int, _ send: @escaping @Sendable (NetworkAgent, Tickets) async -> SenderResult
    ) async -> Measurement {
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        var configuration = NetworkConfiguration(baseURL: load.origin, userAgent: nil, acceptedEncodings: [])
        configuration.limits.maxConcurrentTransfers = max(configuration.limits.maxConcurrentTransfers, load.concurrency)
        let agent = NetworkAgent(configuration: configuration)
        let tickets = Tickets(load.total)
        let results = await withTaskGroup(of: SenderResult.self) { group in
            for _ in 0..<senders { group.addTask { await send(agent, tickets) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        stopwatch.finish(&measurement)
        measurement.add(results)
        measurement.add(agent.statistics)
        await agent.shutdown(grace: .zero)
        return measurement
    }
}

/// A batch ten times as large: the cost of a member must not depend on the size.
enum CrowdCase {
    /// As small as it can be: what is measured is the batch, not the copies of its requests.
    private struct Quiet: Request {
        typealias Value = Void
        let path: String
    }

    static func run(_ server: String) async throws -> Measurement {
        let agent = NetworkAgent(configuration: .init(userAgent: nil, acceptedEncodings: []))
        let request = Quiet(path: server + "/hello")
        _ = try await cost(of: 5000, agent, request)
        let small = try await cost(of: 10_000, agent, request)
        let large = try await cost(of: 100_000, agent, request)
        await agent.shutdown(grace: .zero)
        var measurement = Measurement()
        measurement.extra = ["cpu_small": small, "cpu_large": large, "cpu_growth": large / small]
        return measurement
    }

    /// Microseconds of CPU for each member.
    private static func cost(of count: Int, _ agent: NetworkAgent, _ request: Quiet) async throws -> Double {
        let before = ProcessUsage.now
        _ = try await agent.send(BatchRequest(Array(repeating: request, count: count), atMost: 64))
        let used = ProcessUsage.now - before
        return (used.user + used.system) / Double(count)
    }
}

internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FerryTesting
internal import Synchronization

/// Ferry, with the three ways of delivering a result.
enum FerryRivals {
    /// Tasks on the global executor.
    static func await(_ load: Load) async throws -> Measurement {
        await measure(load, Get(path: load.path)) { _ in nil }
    }

    /// Tasks on the event loop's thread.
    static func executor(_ load: Load) async throws -> Measurement {
        await measure(load, Get(path: load.path)) { $0.taskExecutor }
    }

    /// Tasks on the global executor, with requests that have more fields and arguments.
    static func dressed(_ load: Load) async throws -> Measurement {
        await measure(load, Dressed(path: load.path)) { _ in nil }
    }

    /// Its request is byte for byte that of the core alone and of the bare client: neither sends `User-Agent` and
    /// `Accept-Encoding`, which cost about 0.7 µs.
    ///
    /// The server is in the configuration and the path in the request, as in applications.
    private static func makeAgent(_ load: Load) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: load.origin, userAgent: nil, acceptedEncodings: [])
        configuration.limits.transfersPerHost = load.connections
        configuration.limits.maxConcurrentTransfers = max(1024, load.connections)
        if load.isSecure { configuration.tls.verification = .none }
        return NetworkAgent(configuration: configuration)
    }

    static func measure(
        _ load: Load, _ request: some Request, on executor: (NetworkAgent) -> (any TaskExecutor)?
    ) async -> Measurement {
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = makeAgent(load)
        let executor = executor(agent)
        let tickets = Tickets(load.total)
        let senders = await withTaskGroup(of: SenderResult.self) { group in
            for _ in 0..<load.concurrency {
                group.addTask(executorPreference: executor) { await send(request, by: agent, load.length, tickets) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        stopwatch.finish(&measurement)
        measurement.add(senders)
        measurement.add(agent.statistics)
        await agent.shutdown(grace: .zero)
        return measurement
    }

    private static func send(
        _ request: some Request, by agent: NetworkAgent, _ length: Int, _ tickets: Tickets
    ) async -> SenderResult {
        var result = SenderResult()
        while tickets.take() {
            let start = monotonicNanoseconds()
            var outcome = SenderResult.Outcome.failed
            if let response = try? await agent.send(request).response {
                outcome = response.status == 200 && response.bodyLength == length ? .ok : .wrong
            }
            result.record(outcome, nanoseconds: monotonicNanoseconds() - start)
        }
        return result
    }

    /// Closures on a dispatch queue; each starts the next request.
    static func closures(_ load: Load) async throws -> Measurement {
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = makeAgent(load)
        let tickets = Tickets(load.total)
        let queue = DispatchQueue(label: "ferry.benchmarks")
        let senders = (0..<load.concurrency).map { _ in ClosureSender(load, agent, queue, tickets) }
        await withTaskGroup(of: Void.self) { group in
            for sender in senders { group.addTask { await sender.run() } }
        }
        stopwatch.finish(&measurement)
        measurement.add(senders.map(\.result))
        measurement.add(agent.statistics)
        await agent.shutdown(grace: .zero)
        return measurement
    }
}

/// The request that all rivals within Ferry send. It has a type of its own, as an `HTTPRequest` is larger and costs
/// more to copy.
struct Get: Request {
    let path: String
}

/// A GET as in applications.
struct Dressed: Request {
    let path: String
    var headers: Headers { ["X-Request-Id": "7d1f0c52", "X-Client": "ferry-bench/1", "Accept-Language": "en"] }
    var arguments: Arguments { ["page": 3, "size": 50, "sort": "name", "q": "two words"] }
}

extension Measurement {
    mutating func add(_ statistics: AgentStatistics) {
        connections = statistics.connectionsOpened
        longestTurn = UInt64(statistics.longestTurn / .microseconds(1))
    }
}

/// One chain of closures.
private final class ClosureSender: Sendable {
    private struct State {
        var result = SenderResult()
        var whenDone: CheckedContinuation<Void, Never>?
    }

    private let load: Load
    private let agent: NetworkAgent
    private let queue: DispatchQueue
    private let tickets: Tickets
    private let request: Get
    private let state = Mutex(State())

    init(_ load: Load, _ agent: NetworkAgent, _ queue: DispatchQueue, _ tickets: Tickets) {
        self.load = load
        self.agent = agent
        self.queue = queue
        self.tickets = tickets
        request = Get(path: load.path)
    }

    var result: SenderResult { state.withLock { $0.result } }

    func run() async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.whenDone = continuation }
            next()
        }
    }

    private func next() {
        guard tickets.take() else {
            state.withLock { $0.whenDone.take() }?.resume()
            return
        }
        let start = monotonicNanoseconds()
        agent.start(request, on: queue) { [self] result in
            let time = monotonicNanoseconds() - start
            var outcome = SenderResult.Outcome.failed
            if case .success(let reply) = result {
                outcome = reply.status == 200 && reply.bodyLength == load.length ? .ok : .wrong
            }
            state.withLock { $0.result.record(outcome, nanoseconds: time) }
            next()
        }
    }
}

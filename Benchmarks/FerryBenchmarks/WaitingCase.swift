internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// 100,000 runs behind a server that holds its responses back: the memory that each of them takes.
enum WaitingCase {
    private static let count = 100_000

    /// Started with closures.
    static func closures(_ server: String) async throws -> Measurement {
        let agent = NetworkAgent()
        let answered = Counter()
        let request = Get(path: server + "/delay/60000")
        let before = try await warmUp(agent, request)
        for _ in 0..<count {
            agent.start(request) { _ in answered.add() }
        }
        return await measure(agent, before) { answered.value }
    }

    /// Each awaited by a task of its own, whose memory is included.
    static func tasks(_ server: String) async throws -> Measurement {
        let agent = NetworkAgent()
        let answered = Counter()
        let request = Get(path: server + "/delay/60000")
        let before = try await warmUp(agent, request)
        // Not in a group: a group searches each child that ends among all others, which takes a minute for this many.
        for _ in 0..<count {
            Task {
                _ = try? await agent.send(request)
                answered.add()
            }
        }
        return await measure(agent, before) { answered.value }
    }

    /// All are members of one batch, of which 64 wait in the agent and the rest in the batch.
    static func batch(_ server: String) async throws -> Measurement {
        let agent = NetworkAgent()
        let request = Get(path: server + "/delay/60000")
        let before = try await warmUp(agent, request)
        let members = Array(repeating: request, count: count)
        let task = Task { try? await agent.send(BatchRequest(members, atMost: 64)) }
        while agent.statistics.waiting < 64 { try await Task.sleep(for: .milliseconds(10)) }
        var measurement = Measurement()
        measurement.extra = ["bytes_each": Double(ProcessUsage.memory - before) * 1024 / Double(count)]
        task.cancel()
        _ = await task.value
        await agent.shutdown(grace: .zero)
        return measurement
    }

    /// The memory that Swift itself keeps for a task that waits for a continuation and does nothing else.
    static func bareTasks() async -> Measurement {
        let shelf = Shelf()
        let before = ProcessUsage.memory
        for _ in 0..<count {
            Task {
                await withCheckedContinuation { continuation in shelf.waiting.withLock { $0.append(continuation) } }
            }
        }
        while shelf.waiting.withLock({ $0.count }) < count { try? await Task.sleep(for: .milliseconds(10)) }
        let bytes = Double(ProcessUsage.memory - before) * 1024 / Double(count)
        for continuation in shelf.waiting.withLock({ $0 }) { continuation.resume() }
        var measurement = Measurement()
        measurement.extra = ["bytes_each": bytes]
        return measurement
    }

    /// Fills the slots of running requests, so that later ones only wait, and returns the memory used by then.
    private static func warmUp(_ agent: NetworkAgent, _ request: Get) async throws -> Int {
        for _ in 0..<64 { agent.start(request) { _ in } }
        while agent.statistics.sockets < 64 { try await Task.sleep(for: .milliseconds(10)) }
        return ProcessUsage.memory
    }

    private static func measure(
        _ agent: NetworkAgent, _ before: Int, answered: @Sendable () -> Int
    ) async -> Measurement {
        while agent.statistics.waiting < count && answered() < count { try? await Task.sleep(for: .milliseconds(10)) }
        let kilobytes = ProcessUsage.memory - before
        let waiting = agent.statistics.waiting
        await agent.shutdown(grace: .zero)
        while answered() < count { try? await Task.sleep(for: .milliseconds(10)) }
        var measurement = Measurement()
        measurement.extra = [
            "waiting": Double(waiting), "bytes_each": Double(kilobytes) * 1024 / Double(count),
            "results": Double(answered()),
        ]
        return measurement
    }
}

/// Tasks that were kept.
private final class Shelf: Sendable {
    let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])
}

/// A counter for many threads.
final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add() { count.wrappingAdd(1, ordering: .relaxed) }
}

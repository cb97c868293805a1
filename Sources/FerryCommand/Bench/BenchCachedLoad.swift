internal import Ferry
internal import FerryMeasurement

/// The closed model with a cache: each sender is a task, as a hit needs no loop.
struct BenchCachedLoad: Sendable {
    let agent: NetworkAgent
    let request: BenchRequest
    let recorder: BenchRecorder

    /// Ends when the tickets are used up and all is answered, or its task is cancelled.
    func run(concurrency: Int, _ tickets: BenchTickets) async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<concurrency {
                group.addTask { while !Task.isCancelled, tickets.take() { await send() } }
            }
        }
    }

    private func send() async {
        let start = monotonicNanoseconds()
        do throws(RequestError) {
            let response = try await agent.send(request).response
            recorder.record(response, nanoseconds: monotonicNanoseconds() - start, stripe: 0)
        } catch {
            if error.code == .cancelled {
                recorder.recordUnanswered(monotonicNanoseconds() - start, stripe: 0)
            } else {
                recorder.record(error, stripe: 0)
            }
        }
    }
}

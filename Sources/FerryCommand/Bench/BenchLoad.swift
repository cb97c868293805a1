internal import Ferry
internal import FerryMeasurement
internal import FerryTransport

/// The load itself: sends, and takes down what became of it. Ends when the count or the time is reached and all is
/// answered, or its task is cancelled.
struct BenchLoad: Sendable {
    let agent: NetworkAgent
    let request: BenchRequest
    let recorder: BenchRecorder
    let requests: Int?
    let duration: Duration?

    /// More than these without an answer, and memory is what is measured.
    private static let mostInFlight = 100_000

    /// Each loop sends its share by itself.
    func run(_ model: BenchPlan.Model) async {
        let clocks = agent.clocks
        // Without a network nothing can be sent, and one refusal tells why.
        if clocks.isEmpty { return await sendOnce() }
        let start = monotonicNanoseconds()
        if agent.configuration.cache != nil, case .closed(let concurrency) = model {
            let tickets = BenchTickets(start: start, requests: requests, duration: duration)
            let load = BenchCachedLoad(agent: agent, request: request, recorder: recorder)
            return await load.run(concurrency: concurrency, tickets)
        }
        let shares = shares(of: model, start: start, loops: clocks.count)
        await withDiscardingTaskGroup { group in
            for (index, (clock, share)) in zip(clocks, shares).enumerated() {
                let load = LoopLoad(share, request, by: agent, on: clock, recorder, stripe: index)
                group.addTask { await load.perform() }
            }
        }
    }

    private func shares(of model: BenchPlan.Model, start: UInt64, loops: Int) -> [LoopLoad.Model] {
        switch model {
        case .closed(let concurrency):
            let tickets = BenchTickets(start: start, requests: requests, duration: duration)
            return (0..<loops).map { index in
                let senders = concurrency / loops + (index < concurrency % loops ? 1 : 0)
                return .closed(senders: senders, tickets: tickets)
            }
        case .open(let rate):
            let schedule =
                requests.map { ArrivalSchedule(start: start, rate: rate, count: $0) }
                ?? ArrivalSchedule(start: start, rate: rate, duration: duration ?? .seconds(10))
            return (0..<loops).map { index in
                .open(schedule, first: index, stride: loops, mostInFlight: max(1, Self.mostInFlight / loops))
            }
        }
    }

    private func sendOnce() async {
        do throws(RequestError) {
            let start = monotonicNanoseconds()
            let response = try await agent.send(request).response
            recorder.record(response, nanoseconds: monotonicNanoseconds() - start, stripe: 0)
        } catch {
            recorder.record(error, stripe: 0)
        }
    }
}

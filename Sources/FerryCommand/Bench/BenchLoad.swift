internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization
internal import FerryTransport

/// The load itself: sends requests and records the results. Ends when the count or the time is reached and every
/// request has its result, or when its task is cancelled.
struct BenchLoad: Sendable {
    let agent: NetworkAgent
    let request: HTTPRequest<Response>
    let recorder: BenchRecorder
    let requests: Int?
    let duration: Duration?
    /// In the open model: which of the requests are sent.
    var share = FleetShare.whole

    /// With more requests in flight, the load would measure memory.
    private static let mostInFlight = 100_000

    /// Starts one sender per event loop, and waits for all of them.
    func run(_ model: BenchPlan.Model, since start: UInt64) async {
        let clocks = agent.clocks
        // Without event loops nothing can be sent; the error of one request says why.
        if clocks.isEmpty { return await sendOnce() }
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
                .open(
                    schedule, first: index * share.count + share.index, stride: loops * share.count,
                    mostInFlight: max(1, Self.mostInFlight / loops))
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

/// The closed model with a cache: each sender is a task, because a hit needs no event loop.
struct BenchCachedLoad: Sendable {
    let agent: NetworkAgent
    let request: HTTPRequest<Response>
    let recorder: BenchRecorder

    /// Ends when the tickets are used up and every request has its result, or when its task is cancelled.
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

/// Hands out the requests of the closed model one by one, so that all senders work until the end. Thread-safe.
final class BenchTickets: Sendable {
    private let left: Atomic<Int>
    private let end: UInt64

    init(start: UInt64, requests: Int?, duration: Duration?) {
        left = Atomic(requests ?? .max)
        end = duration.map { start + UInt64($0.microseconds) * 1000 } ?? .max
    }

    /// Takes one request; `false` when none is left.
    func take() -> Bool {
        left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 && (end == .max || monotonicNanoseconds() < end)
    }
}

/// When the requests of the open model are due: at the wanted rate, evenly spaced, however long the responses take.
///
/// Above 1,500 requests per second several are due at once, about a millisecond apart. A wake-up for each of them would
/// cost the client two to three times as much CPU, which a server on the same machine would lack. Each due time is
/// computed from the first, so a late request does not delay those after it.
struct ArrivalSchedule: Sendable, Equatable {
    /// When the first request is due, in nanoseconds of the monotonic clock.
    let start: UInt64
    /// Requests per second.
    let rate: Double
    /// The number of requests.
    let count: Int
    /// The number of requests that are due at once.
    private let group: Int

    init(start: UInt64, rate: Double, count: Int) {
        self.start = start
        self.rate = rate
        self.count = count
        group = max(1, Int((rate / 1000).rounded()))
    }

    /// Creates the schedule of all requests that are due within a duration.
    init(start: UInt64, rate: Double, duration: Duration) {
        let seconds = Double(duration.microseconds) / 1e6
        self.init(start: start, rate: rate, count: max(1, Int((seconds * rate).rounded(.up))))
    }

    /// When request `number` is due; the first has the number 0.
    func time(of number: Int) -> UInt64 {
        let (time, isTooFar) = start.addingReportingOverflow(
            wholeNumber((Double(number / group * group) * 1e9 / rate).rounded()))
        return isTooFar ? .max : time
    }

    /// The number of requests that are due by now.
    func due(at now: UInt64) -> Int {
        if now < start { return 0 }
        var due = min(count, (Int(Double(now - start) * rate / 1e9) / group + 1) * group)
        // Rounding to nanoseconds may make this one more or less.
        while due > 0 && time(of: due - 1) > now { due -= 1 }
        while due < count && time(of: due) <= now { due += 1 }
        return due
    }
}

/// The integer part, clamped to the range of `UInt64`; 0 for NaN.
func wholeNumber(_ value: Double) -> UInt64 {
    value >= 0x1p64 ? .max : value > 0 ? UInt64(value) : 0
}

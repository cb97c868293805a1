internal import Ferry
internal import FerryMeasurement
internal import FerryTransport
internal import Synchronization

/// The load itself: sends, and takes down what became of it. Ends when the count or the time is reached and all is
/// answered, or its task is cancelled.
struct BenchLoad: Sendable {
    let agent: NetworkAgent
    let request: HTTPRequest<Response>
    let recorder: BenchRecorder
    let requests: Int?
    let duration: Duration?
    /// Of the open model: which of the numbers are sent.
    var share = FleetShare.whole

    /// More than these without an answer, and memory is what is measured.
    private static let mostInFlight = 100_000

    /// Each loop sends its share by itself.
    func run(_ model: BenchPlan.Model, since start: UInt64) async {
        let clocks = agent.clocks
        // Without a network nothing can be sent, and one refusal tells why.
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

/// The closed model with a cache: each sender is a task, as a hit needs no loop.
struct BenchCachedLoad: Sendable {
    let agent: NetworkAgent
    let request: HTTPRequest<Response>
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

/// Hands out the requests of the closed model one by one, so that all senders are at work until the last.
final class BenchTickets: Sendable {
    private let left: Atomic<Int>
    private let end: UInt64

    init(start: UInt64, requests: Int?, duration: Duration?) {
        left = Atomic(requests ?? .max)
        end = duration.map { start + UInt64($0.microseconds) * 1000 } ?? .max
    }

    /// Whether there is one more to send.
    func take() -> Bool {
        left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 && (end == .max || monotonicNanoseconds() < end)
    }
}

/// When the requests of the open model are due: as many a second as were asked for, at even distances, however long the
/// answers take.
///
/// Above 1,500 a second several are due at once, so that the distances are about a millisecond. A wake-up for each
/// would cost the client two to three times as much CPU, which a server on the same machine would miss. Each due time
/// is computed from the first, so that what was late once does not delay those that follow.
struct ArrivalSchedule: Sendable, Equatable {
    /// Nanoseconds of the monotonic clock: when the first is due.
    let start: UInt64
    /// A second.
    let rate: Double
    /// How many there are.
    let count: Int
    /// How many are due at once.
    private let group: Int

    init(start: UInt64, rate: Double, count: Int) {
        self.start = start
        self.rate = rate
        self.count = count
        group = max(1, Int((rate / 1000).rounded()))
    }

    /// All that are due within a time.
    init(start: UInt64, rate: Double, duration: Duration) {
        let seconds = Double(duration.microseconds) / 1e6
        self.init(start: start, rate: rate, count: max(1, Int((seconds * rate).rounded(.up))))
    }

    /// When the one with this number is due; the first has the number 0.
    func time(of number: Int) -> UInt64 {
        let (time, isTooFar) = start.addingReportingOverflow(
            wholeNumber((Double(number / group * group) * 1e9 / rate).rounded()))
        return isTooFar ? .max : time
    }

    /// How many are due by now.
    func due(at now: UInt64) -> Int {
        if now < start { return 0 }
        var due = min(count, (Int(Double(now - start) * rate / 1e9) / group + 1) * group)
        // Due times are rounded to nanoseconds, which may make it one more or less.
        while due > 0 && time(of: due - 1) > now { due -= 1 }
        while due < count && time(of: due) <= now { due += 1 }
        return due
    }
}

/// The whole part of it; of what is too large, or too small, the nearest there is, and 0 for what is no number.
func wholeNumber(_ value: Double) -> UInt64 {
    value >= 0x1p64 ? .max : value > 0 ? UInt64(value) : 0
}

internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// The load itself: sends, and takes down what became of it. Ends when the count or the time is reached and all is
/// answered, or its task is cancelled.
struct BenchLoad: Sendable {
    let agent: NetworkAgent
    let request: BenchRequest
    let recorder: BenchRecorder
    let requests: Int?
    let duration: Duration?

    func run(_ model: BenchPlan.Model) async {
        switch model {
        case .closed(let concurrency): await runClosed(concurrency)
        case .open(let rate): await runOpen(rate)
        }
    }

    // MARK: The closed model

    private func runClosed(_ concurrency: Int) async {
        let tickets = BenchTickets(start: monotonicNanoseconds(), requests: requests, duration: duration)
        await withDiscardingTaskGroup { group in
            for sender in 0..<concurrency {
                group.addTask {
                    while tickets.take() && !Task.isCancelled {
                        await send(since: monotonicNanoseconds(), sender)
                    }
                }
            }
        }
    }

    // MARK: The open model

    /// More than these without an answer, and memory is what is measured.
    private static let mostInFlight = 100_000

    private func runOpen(_ rate: Double) async {
        let start = monotonicNanoseconds()
        let schedule =
            requests.map { ArrivalSchedule(start: start, rate: rate, count: $0) }
            ?? ArrivalSchedule(start: start, rate: rate, duration: duration ?? .seconds(10))
        let pacer = Pacer(schedule)
        let inFlight = InFlight()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                for await due in pacer.arrivals {
                    for number in due where !Task.isCancelled {
                        if inFlight.count.wrappingAdd(1, ordering: .relaxed).newValue > Self.mostInFlight {
                            inFlight.count.wrappingSubtract(1, ordering: .relaxed)
                            recorder.recordUnsent(sender: number)
                            continue
                        }
                        group.addTask {
                            let due = schedule.time(of: number)
                            let now = monotonicNanoseconds()
                            recorder.recordLateness(now - min(due, now), sender: number)
                            await send(since: due, number)
                            inFlight.count.wrappingSubtract(1, ordering: .relaxed)
                        }
                    }
                }
            }
        } onCancel: {
            pacer.stop()
        }
    }

    private final class InFlight: Sendable {
        let count = Atomic(0)
    }

    // MARK: Both

    private func send(since start: UInt64, _ sender: Int) async {
        do throws(RequestError) {
            let response = try await agent.send(request).response
            recorder.record(response, nanoseconds: monotonicNanoseconds() - start, sender: sender)
        } catch {
            // Only ctrl-C cancels; what it cut off is nobody's fault, but may be the slowest of all.
            if error.code == .cancelled {
                recorder.recordUnanswered(monotonicNanoseconds() - start, sender: sender)
            } else {
                recorder.record(error, sender: sender)
            }
        }
    }
}

/// Waits on a thread of its own for the times of a schedule: a task's sleep is a millisecond late.
private final class Pacer: Sendable {
    /// Numbers that have become due, in their order.
    let arrivals: AsyncStream<Range<Int>>
    private let isStopped = Atomic(false)

    init(_ schedule: ArrivalSchedule) {
        let (stream, continuation) = AsyncStream.makeStream(of: Range<Int>.self)
        arrivals = stream
        DispatchQueue(label: "ferry.bench.pacer", qos: .userInteractive).async { [self] in
            var next = 0
            while next < schedule.count && !isStopped.load(ordering: .relaxed) {
                let due = schedule.due(at: monotonicNanoseconds())
                if due > next {
                    continuation.yield(next..<due)
                    next = due
                } else {
                    Self.wait(until: schedule.time(of: next))
                }
            }
            continuation.finish()
        }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// A tenth of a second at most, so that it can be stopped.
    private static func wait(until time: UInt64) {
        blockThread(untilMonotonic: min(time, monotonicNanoseconds() + 100_000_000))
    }
}

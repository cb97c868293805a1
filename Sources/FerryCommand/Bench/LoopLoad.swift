internal import Ferry
internal import FerryMeasurement
internal import FerryTransport

/// One event loop's share of the load, sent and counted on the loop's own thread.
///
/// A response is recorded and the next request submitted in the same turn of the loop. In the open model the loop's
/// clock says when a request is due. If the loop is late, it sends all requests that have become due.
///
/// Sendable because all mutable state belongs to the loop's thread, on which ``perform()`` runs every access.
final class LoopLoad: LoopSenderReceiver, @unchecked Sendable {
    /// When the next request is sent.
    enum Model: Sendable {
        /// Each of `senders` sends its next request after its last response.
        case closed(senders: Int, tickets: BenchTickets)
        /// At the times of a schedule, which `stride` loops share: this one sends `first` and every `stride`th after
        /// it.
        case open(ArrivalSchedule, first: Int, stride: Int, mostInFlight: Int)
    }

    private let model: Model
    private let sender: LoopSender<HTTPRequest<Response>>
    private let agent: NetworkAgent
    private let clock: LoopClock
    private let recorder: BenchRecorder
    private let stripe: Int

    /// When each place sent its request or, in the open model, when the request was due.
    private var starts: [UInt64] = []
    /// Places of the open model without a request in flight.
    private var free: [Int] = []
    private var inFlight = 0
    /// The number of the next request of the open model.
    private var next = 0
    /// The time that the clock is set to, and whether it was in the future then.
    private var alarm: (time: UInt64, wasAhead: Bool) = (0, false)
    private var isStopped = false
    private var hasBegun = false
    private var whenDone: CheckedContinuation<Void, Never>?

    /// The number of requests sent before the loop looks at its sockets again.
    private static let mostInRow = 64
    /// Nanoseconds between two measurements of the loop's lag.
    private static let lookInterval: UInt64 = 20_000_000

    init(
        _ model: Model, _ request: HTTPRequest<Response>, by agent: NetworkAgent, on clock: LoopClock,
        _ recorder: BenchRecorder, stripe: Int
    ) {
        self.model = model
        self.agent = agent
        self.clock = clock
        self.recorder = recorder
        self.stripe = stripe
        sender = LoopSender(request, by: agent, on: clock)
    }

    /// Sends the whole share and waits for all results. If the task is cancelled, the requests in flight are too.
    func perform() async {
        sender.attach(self)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Task(executorPreference: clock.executor) {
                    self.whenDone = continuation
                    self.begin()
                }
            }
        } onCancel: {
            Task(executorPreference: clock.executor) { self.stop() }
        }
        clock.onTime(nil)
    }

    // MARK: On the loop's thread

    private func begin() {
        hasBegun = true
        clock.onTime { [weak self] in self?.ring() }
        switch model {
        case .closed(let senders, _):
            starts = [UInt64](repeating: 0, count: senders)
            for place in 0..<senders { sendNext(place) }
        case .open(_, let first, _, _):
            next = first
            sendDue()
        }
        setClock()
        endWhenDone()
    }

    private func ring() {
        if whenDone == nil { return }
        if alarm.wasAhead { recorder.recordLag(monotonicNanoseconds() - alarm.time, stripe: stripe) }
        if case .open = model { sendDue() }
        setClock()
        endWhenDone()
    }

    private func setClock() {
        let now = monotonicNanoseconds()
        var time = now + Self.lookInterval
        if case .open(let schedule, _, _, _) = model, next < schedule.count {
            time = min(time, max(1, schedule.time(of: next)))
        }
        alarm = (time, time > now)
        clock.wake(at: time)
    }

    /// On the loop's thread, so that no request is sent after the cancellation.
    private func stop() {
        isStopped = true
        agent.cancelAll()
        if hasBegun { endWhenDone() }
    }

    private func endWhenDone() {
        if inFlight > 0 { return }
        if case .open(let schedule, _, _, _) = model, next < schedule.count, !isStopped { return }
        guard let whenDone = whenDone.take() else { return }
        clock.wake(at: 0)
        whenDone.resume()
    }

    func ended(_ place: Int, _ result: Result<Response, RequestError>) {
        inFlight -= 1
        record(result, place)
        switch model {
        case .closed: sendNext(place)
        case .open: free.append(place)
        }
        endWhenDone()
    }

    // MARK: The closed model

    private func sendNext(_ place: Int) {
        guard case .closed(_, let tickets) = model, !isStopped, tickets.take() else { return }
        starts[place] = monotonicNanoseconds()
        inFlight += 1
        guard let refusal = sender.send(place) else { return }
        inFlight -= 1
        record(refusal, place)
        // In the next turn: a series of refusals would otherwise block the loop.
        inFlight += 1
        Task(executorPreference: clock.executor) {
            self.inFlight -= 1
            self.sendNext(place)
            self.endWhenDone()
        }
    }

    // MARK: The open model

    private func sendDue() {
        guard case .open(let schedule, _, let stride, let mostInFlight) = model, !isStopped else { return }
        let end = schedule.due(at: monotonicNanoseconds())
        for _ in 0..<Self.mostInRow where next < end {
            let due = schedule.time(of: next)
            next += stride
            if inFlight < mostInFlight {
                recorder.recordLateness(monotonicNanoseconds() - due, stripe: stripe)
                send(due: due)
            } else {
                recorder.recordUnsent(stripe: stripe)
            }
        }
    }

    private func send(due: UInt64) {
        let place = free.popLast() ?? starts.count
        if place == starts.count { starts.append(0) }
        starts[place] = due
        inFlight += 1
        guard let refusal = sender.send(place) else { return }
        inFlight -= 1
        record(refusal, place)
        free.append(place)
    }

    // MARK: Both

    private func record(_ result: Result<Response, RequestError>, _ place: Int) {
        let nanoseconds = monotonicNanoseconds() - starts[place]
        switch result {
        case .success(let response): recorder.record(response, nanoseconds: nanoseconds, stripe: stripe)
        // Only ctrl-C cancels. An interrupted request has not failed, but may be the slowest of all.
        case .failure(let error) where error.code == .cancelled:
            recorder.recordUnanswered(nanoseconds, stripe: stripe)
        case .failure(let error): recorder.record(error, stripe: stripe)
        }
    }
}

package import FerryTransport

/// Receives the results of a ``LoopSender``, on its loop's thread.
package protocol LoopSenderReceiver: AnyObject, Sendable {
    /// The result of the request of this place, once.
    func ended(_ place: Int, _ result: Result<Response, RequestError>)
}

/// Sends a request again and again on the thread of one loop: no task, no continuation and no wake-up stands between a
/// response and the next request. For generators of load.
///
/// A run that a response does not end (a redirect, a retry, a challenge) goes on in a task on the same thread. The
/// cache is not asked.
///
/// Sendable because only the loop's thread touches what changes, which each method checks.
package final class LoopSender<R: Request>: AnswerReading, @unchecked Sendable {
    private let core: AgentCore
    private let clock: LoopClock
    private let request: R
    /// Those that are on their way, by their place.
    private var runs: [AwaitedRun?] = []
    /// The place of the run that is being started, and its answer if it comes before that is done.
    private var starting = -1
    private var early: Answer?
    private weak var receiver: (any LoopSenderReceiver)?

    package init(_ request: R, by agent: NetworkAgent, on clock: LoopClock) {
        core = agent.core
        self.clock = clock
        self.request = request
    }

    /// Sets who receives; called once, before the first request. The receiver is held weakly.
    package func attach(_ receiver: any LoopSenderReceiver) { self.receiver = receiver }

    /// Sends the request for a place that has none on its way. `nil` where the receiver gets the result later; the
    /// result itself where the request was refused at once.
    package func send(_ place: Int) -> Result<Response, RequestError>? {
        precondition(clock.isCurrent, "a loop's sender is used on the loop's thread")
        starting = place
        let run = AwaitedRun.start(request, answering: AnswerReader(object: self, place: place), by: core)
        starting = -1
        if let answer = early.take() { return result(of: run, place, answer) }
        while place >= runs.count { runs.append(nil) }
        runs[place] = run
        return nil
    }

    func answered(_ place: Int, _ answer: Answer) {
        precondition(clock.isCurrent, "a run was answered on another thread than its loop's")
        if place == starting {
            early = answer
            return
        }
        guard let run = runs[place].take() else { preconditionFailure("an answer came that nobody waits for") }
        if let result = result(of: run, place, answer) { receiver?.ended(place, result) }
    }

    /// `nil` where the run goes on in a task.
    private func result(of run: AwaitedRun, _ place: Int, _ answer: Answer) -> Result<Response, RequestError>? {
        if run.isEnd(answer, of: request, by: core) { return conclude(run, answer) }
        Task(executorPreference: clock.executor) {
            let last = await run.goOn(self.request, after: answer, by: self.core)
            self.receiver?.ended(place, self.conclude(run, last))
        }
        return nil
    }

    private func conclude(_ run: AwaitedRun, _ answer: Answer) -> Result<Response, RequestError> {
        Result { () throws(RequestError) in try run.conclude(request, answer, by: core).response }
    }
}

extension NetworkAgent {
    /// The clocks of its loops; empty where it has none, as with a stand-in for tests.
    package var clocks: [LoopClock] { core.transport.clocks }
}

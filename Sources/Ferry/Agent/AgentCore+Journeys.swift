import FerryTransport
import Synchronization

extension AgentCore {
    /// Lets a journey in that is to begin; the reason when it may not. From here on it can be ended by whoever ends all
    /// runs, and is waited for.
    func admit(_ journey: Journey, url: String) -> RequestError? {
        state.withLock { state in
            if state.isClosed && !state.letsIn(journey.group != nil || journey.isRefresh) {
                return RequestError(TransferFailure(.shutdown), url: url)
            }
            if state.table.count + state.resting >= maxRuns { return .queueFull(url: url) }
            state.enter(journey, self)
            return nil
        }
    }

    /// A journey is over, or was never begun.
    func leave(_ journey: Journey) {
        state.withLock { state in
            guard state.journeys.removeValue(forKey: ObjectIdentifier(journey)) != nil else { return IdleAction() }
            state.resting -= 1
            return state.becameIdle()
        }.act()
    }

    /// Takes a run on that is more than one plain transfer, until it has its answer.
    func travel(
        _ itinerary: Itinerary, _ journey: Journey, after first: Answer, _ carrier: (any BodyCarrier)? = nil
    ) async -> Answer {
        defer { leave(journey) }
        enter(journey)
        var travel = Travel(self, itinerary, journey, carrier, after: first)
        return await travel.run(after: first)
    }

    /// Makes sure that a journey is known which goes on. One that comes from the plain transfer of `run` began when the
    /// cancels of all runs were at its number; since it was answered nobody could find it.
    func enter(_ journey: Journey, from run: Run? = nil) {
        let (isLate, isCancelled) = state.withLock { state in
            if state.journeys[ObjectIdentifier(journey)] == nil { state.enter(journey, self) }
            if let run { state.decided(run) }
            return (state.isOver, run?.lastCancel.map { state.cancels.covers(journey.tag, since: $0) } ?? false)
        }
        if isCancelled { journey.end(.cancelled) }
        // It comes from a plain transfer that had been answered when all journeys were ended.
        if isLate { journey.end(.shutdown) }
    }

    /// Whether this is the end of a run that a task waits for. If not, the task has to go on.
    func isEnd<R: Request>(_ answer: Answer, of run: AwaitedRun, _ request: R) -> Bool {
        guard isSettled(answer, of: request) else { return false }
        if run.isUndecided {
            state.withLock { state in
                state.decided(run)
                return state.becameIdle()
            }.act()
        }
        return true
    }

    /// A transfer of a journey counts for it.
    func goes() { state.withLock { $0.resting -= 1 } }

    /// A transfer of a journey has left the table: the journey counts by itself again.
    func rests() { state.withLock { $0.resting += 1 } }
}

extension AgentCore.State {
    fileprivate mutating func enter(_ journey: Journey, _ core: AgentCore) {
        journeys[ObjectIdentifier(journey)] = journey
        resting += 1
        keep = core
    }

    /// The task of a run has looked at its answer.
    fileprivate mutating func decided(_ run: Run) {
        if run.isUndecided { undecided -= 1 }
        run.isUndecided = false
    }
}

import FerryTransport
import Synchronization

extension AgentCore {
    /// Takes a run on that is more than one plain transfer, until it has its answer.
    func travel(
        _ itinerary: Itinerary, _ journey: Journey, after first: Answer, _ carrier: StreamCarrier? = nil
    ) async -> Answer {
        let key = ObjectIdentifier(journey)
        let isOpen = state.withLock { state in
            // One that has begun may go on; one that was never sent comes too late.
            if state.isClosed, case .unsent = first { return false }
            state.journeys[key] = journey
            state.keep = self
            return true
        }
        guard isOpen else { return .refused(RequestError(TransferFailure(.shutdown), url: itinerary.url)) }
        var travel = Travel(self, itinerary, journey, carrier, after: first)
        let answer = await travel.run(after: first)
        state.withLock { state in
            state.journeys[key] = nil
            return state.becameIdle()
        }.act()
        return answer
    }
}

import FerryTransport
import Synchronization

extension Download {
    /// Where a file is cut whose first piece has been asked for.
    func segments(of total: Int64, first: Int64) -> [DownloadMetadata.Segment] {
        let rest = total - first
        let count = max(min(Int64(plan.options.segments), rest / plan.options.leastSegment), 1)
        // The last ones are a byte longer, and no product is larger than the file.
        let (whole, over) = rest.quotientAndRemainder(dividingBy: count)
        func start(_ index: Int64) -> Int64 { first + index * whole + max(0, index - (count - over)) }
        return [DownloadMetadata.Segment(start: 0, end: first)]
            + (0..<count).map { DownloadMetadata.Segment(start: start($0), end: start($0 + 1)) }
    }

    /// The next segment that nobody works at and that is not there; `nil` when there is none, or no segments.
    func claimSegment() -> Int? {
        state.withLock { state in
            guard let segments = state.metadata.segments else { return nil }
            let next = segments.indices.first { !segments[$0].isComplete && !state.claimed.contains($0) }
            if let next { state.claimed.insert(next) }
            return next
        }
    }

    /// Has others load the segments besides the lead's, once.
    func callHelpers(_ itinerary: Itinerary, _ journey: Journey, _ core: AgentCore) {
        let (metadata, resumedFrom, isFirst) = state.withLock { ($0.metadata, $0.resumedFrom, $0.helpers == nil) }
        guard isFirst else { return }
        meter.begin(at: metadata.received(0), resumedFrom: resumedFrom, total: metadata.total, isResumable: true)
        // None for a file that is gone on with in one segment: the lead loads all of them, and at the rate for all.
        let journeys = (1..<plan.options.segments).map { _ in Journey(tag: itinerary.tag, of: core) }
        state.withLock { $0.helperJourneys = journeys }
        for helper in journeys { journey.adopt(helper) }
        let work = Task {
            await withTaskGroup { group in
                for helper in journeys {
                    group.addTask { await self.loadSegments(itinerary.ofHelper, helper, of: journey, core) }
                }
            }
        }
        let clerk = Task { await keepAccount() }
        state.withLock { $0.helpers = DownloadHelpers(work: work, clerk: clerk) }
    }

    /// Whether others write to the part, too.
    var hasHelpers: Bool { state.withLock { $0.helpers != nil } }

    /// Nobody works at the file any more, and nothing of it is of use: begins it anew. False when that has happened
    /// before.
    func beginAnew() -> Bool {
        if !restart() { return false }
        state.withLock { state in
            (state.helpers, state.helperJourneys, state.helperFault) = (nil, [], nil)
            (state.isOutdated, state.claimed) = (false, [])
        }
        return true
    }

    /// A segment is one of another file.
    func isOutdated() { state.withLock { $0.isOutdated = true } }

    /// Until all segments are there; throws why one is not.
    func waitForHelpers() async throws(RequestError) {
        guard let helpers = state.withLock({ $0.helpers }) else { return }
        await helpers.work.value
        await helpers.dismissClerk()
        if let fault = helperFault { throw fault }
        state.withLock { $0.isComplete = $0.metadata.segments?.allSatisfy(\.isComplete) ?? false }
    }

    /// Nobody works at the file any more.
    func endHelpers() async {
        guard let helpers = state.withLock({ $0.helpers }) else { return }
        for journey in state.withLock({ $0.helperJourneys }) { journey.end(.cancelled) }
        await helpers.work.value
        // The clerk may wait for the disk.
        if state.withLock({ $0.isStuck }) { return helpers.clerk.cancel() }
        await helpers.dismissClerk()
    }

    /// What one of them has failed with, the first.
    var helperFault: RequestError? { state.withLock { $0.helperFault } }

    /// One segment after another, until none is left.
    private func loadSegments(
        _ itinerary: Itinerary, _ journey: Journey, of lead: Journey, _ core: AgentCore
    ) async {
        while helperFault == nil, let index = claimSegment() {
            let worker = DownloadWorker(self, itinerary, segment: index)
            let answer = await core.travel(itinerary, journey, after: .unsent, worker)
            do throws(RequestError) {
                let response = try core.builder.response(of: answer, url: itinerary.url)
                guard state.withLock({ $0.metadata.segments?[index].isComplete ?? false }) else {
                    throw await worker.refusal(of: response, to: journey, by: core)
                }
            } catch {
                // It cannot be had: none of the others is wanted any more.
                let others = state.withLock { state in
                    if state.helperFault == nil { state.helperFault = error }
                    return state.helperJourneys
                }
                for other in others { other.end(.cancelled) }
                // Whatever it does now.
                return lead.breakOff()
            }
        }
    }

    /// Once a second.
    private func keepAccount() async {
        while true {
            try? await Task.sleep(for: .seconds(1))
            let (metadata, part) = state.withLock { ($0.metadata, $0.part) }
            guard !Task.isCancelled, let part else { return }
            await disk.settle { part.note(metadata) }
        }
    }
}

/// Those who load segments beside the lead.
struct DownloadHelpers: Sendable {
    var work: Task<Void, Never>
    /// Writes down how far they are.
    var clerk: Task<Void, Never>

    func dismissClerk() async {
        clerk.cancel()
        await clerk.value
    }
}

extension Itinerary {
    /// The same way, and nobody is told of it: it is the lead's run.
    fileprivate var ofHelper: Itinerary {
        var helper = self
        (helper.watch, helper.meter) = (nil, nil)
        return helper
    }
}

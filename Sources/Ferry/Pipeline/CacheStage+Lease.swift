import Dispatch
import FerryCache

extension CacheStage {
    /// Where another run, as a rule in another process, fetches what this one needs: its answer. `nil` where this run
    /// is to fetch it, which it is also where the other takes too long.
    func answerOfOther(_ call: Call, _ plan: CachePlan, _ control: RunControl) async -> Answer? {
        guard let cache = core.cache, let time = cache.leaseTime else { return nil }
        let end = ContinuousClock.now + min(time, .seconds(3600))
        var pause = Self.shortestPause
        while true {
            let granted = await control.wait(until: call.end) { cache.lease(plan.key, $0) }
            guard let granted else { return .refused(control.overdue(url: call.url)) }
            // Whoever had it before may have stored it since this run looked.
            switch await find(for: call.request, plan, control, until: call.end) {
            case .verdict(.fresh(let stored, let trace), _):
                if granted { cache.endLease(plan.key) }
                return Answer(stored, trace, plan)
            case .verdict: break
            case .brokenOff:
                if granted { cache.endLease(plan.key) }
                return .refused(control.overdue(url: call.url))
            }
            if granted || ContinuousClock.now >= end { return nil }
            let isOver: Bool? = await control.wait(until: call.end) { [pause] done in
                core.timerQueue.asyncAfter(deadline: .now() + .milliseconds(pause)) { done(true) }
            }
            if isOver == nil { return .refused(control.overdue(url: call.url)) }
            pause = min(pause * 2, Self.longestPause)
        }
    }

    /// Between two looks whether the other is done, in milliseconds.
    private static let shortestPause = 2
    private static let longestPause = 32
}

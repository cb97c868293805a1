internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// One measurement: the warm-up, the load, and what is watched beside it.
struct BenchRun: Sendable {
    private let plan: BenchPlan
    private let agent: NetworkAgent
    private let bodies: BodyCheck

    init(_ plan: BenchPlan) {
        self.plan = plan
        agent = NetworkAgent(configuration: plan.order.configuration)
        bodies = BodyCheck(plan.bodies)
    }

    /// Ends when the count or the time is reached, or its task is cancelled; what is on its way then is waited for,
    /// unless it was the latter.
    func perform() async -> BenchReport {
        let display = Console.isLive ? BenchDisplay(plan) : nil
        if plan.warmUp > .zero {
            let recorder = BenchRecorder(bodies, loops: plan.loops)
            let watch = watch(recorder, since: monotonicNanoseconds(), display, isWarmUp: true)
            await load(recorder, requests: nil, duration: plan.warmUp).run(plan.model)
            watch.cancel()
            _ = await watch.value
        }
        let report = await measure(display)
        display?.clear()
        await agent.shutdown(grace: .zero)
        return report
    }

    private func measure(_ display: BenchDisplay?) async -> BenchReport {
        let recorder = BenchRecorder(bodies, loops: plan.loops)
        let date = Date.now
        let cpu = CPUShare.Reading()
        let usage = ProcessUsage.now
        let start = monotonicNanoseconds()
        let watch = watch(recorder, since: start, display, isWarmUp: false)
        await load(recorder, requests: plan.requests, duration: plan.duration).run(plan.model)
        var figures = BenchFigures(recorder.total)
        figures.seconds = Double(monotonicNanoseconds() - start) / 1e9
        figures.usage = ProcessUsage.now - usage
        figures.share = CPUShare.Reading().since(cpu)
        figures.connections = agent.statistics.connectionsOpened
        watch.cancel()
        var timeline = await watch.value
        timeline.finish(figures.totals.latencies, failed: figures.totals.failed, at: figures.seconds)
        figures.windows = timeline.windows
        return BenchReport(plan, figures, date: date)
    }

    private func load(_ recorder: BenchRecorder, requests: Int?, duration: Duration?) -> BenchLoad {
        var request = plan.order.request
        // Each observer costs; without a schema it would see nothing.
        if request.jsonSchema != nil { request.observers = [DecodingObserver(recorder: recorder)] }
        return BenchLoad(agent: agent, request: request, recorder: recorder, requests: requests, duration: duration)
    }

    /// Looks ten times a second until it is cancelled.
    private func watch(
        _ recorder: BenchRecorder, since start: UInt64, _ display: BenchDisplay?, isWarmUp: Bool
    ) -> Task<BenchTimeline, Never> {
        let goal = isWarmUp ? plan.warmUp : plan.duration
        return Task {
            var timeline = BenchTimeline(seconds: goal.map { Double($0.microseconds) / 1e6 })
            while true {
                try? await Task.sleep(for: .milliseconds(100))
                let seconds = Double(monotonicNanoseconds() - start) / 1e9
                if Task.isCancelled { return timeline }
                let totals = recorder.total
                timeline.observe(totals.latencies, failed: totals.failed, at: seconds)
                display?.show(totals, timeline.windows, seconds: seconds, isWarmUp: isWarmUp)
            }
        }
    }
}

/// All that one measurement found out.
struct BenchFigures: Sendable {
    var totals: BenchTotals
    var seconds = 0.0
    var usage = ProcessUsage.zero
    var share = CPUShare(busiestThread: 0, process: 0, machine: 0)
    var connections: UInt64 = 0
    var windows: [BenchWindow] = []

    init(_ totals: BenchTotals) { self.totals = totals }
}

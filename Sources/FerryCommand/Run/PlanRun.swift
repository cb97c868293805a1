internal import Ferry
internal import FerryMeasurement

/// A plan under way, and the rows that it fills.
struct PlanRun: Sendable {
    let plan: Plan
    let recorder: PlanRecorder
    private let state: PlanState

    init(_ start: PlanStart) {
        plan = start.plan
        state = start.state
        recorder = PlanRecorder(plan.root)
    }

    /// Runs it; what failed stands in the rows. Cancelling the task cancels what runs.
    func perform(by agent: NetworkAgent) async -> PlanReport {
        recorder.begin()
        let steps = PlanSteps(plan: plan, state: state, recorder: recorder)
        var fault: RequestError?
        do throws(RequestError) {
            _ = try await agent.send(steps.chain(plan.root, row: 0))
        } catch {
            fault = error
        }
        recorder.explain(plan.root, row: 0, Task.isCancelled ? .cancelled : nil)
        return PlanReport(name: plan.name, rows: recorder.rows, nanoseconds: recorder.elapsed, fault: fault)
    }
}

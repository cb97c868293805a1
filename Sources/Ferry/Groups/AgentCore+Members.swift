import FerryTransport

extension AgentCore {
    /// Sends a member of a group: as any request, and within what holds for the group.
    ///
    /// It is called on no actor, so what `NetworkAgent.send(_:)` does about actors has no part here.
    nonisolated(nonsending) func send<R: Request>(
        _ request: R, in group: GroupRun
    ) async throws(RequestError) -> Reply<R.Value> {
        if asksCache(request) { return try await send(request, by: request.cacheMode, in: group) }
        let run = startAwaited(request, in: group)
        var answer = await withTaskCancellationHandler {
            await run.answer()
        } onCancel: {
            // One that ends with the agent is told so by the transport.
            if group.ending != .shutdown { cancel(run) }
        }
        if !isSettled(answer, of: request) {
            answer = await goOn(request, run, after: answer)
        }
        return try conclude(request, answer, of: run)
    }
}

extension GroupRun {
    /// Lets a member in: what holds for the group holds for its transfer too. The reason when it may not begin.
    @inline(never)
    func admit<R: Request>(_ run: Run, _ transfer: inout TransferRequest, of request: R) -> RequestError? {
        run.group = self
        run.inheritsPriority = request.inheritsPriority
        if let priority, request.inheritsPriority { transfer.ring = priority.ring }
        if let deadline {
            let remaining = milliseconds(ContinuousClock.now.duration(to: deadline))
            let own = transfer.timeouts.deadline
            transfer.timeouts.deadline = own == 0 ? remaining : min(own, remaining)
        }
        return refusal(url: run.url)
    }
}

extension Request {
    /// What says no more than the default takes its group's.
    var inheritsPriority: Bool { priority == .normal }
}

import FerryTransport
import Synchronization

extension AgentCore {
    /// Admits a new run, or returns the reason for refusing it. From here on `cancelAll` and `shutdown` find the run.
    func admit(_ control: RunControl, url: String) -> RequestError? {
        state.withLock { state in
            if state.isClosed && !state.letsIn(control.group != nil || control.isRefresh) {
                return RequestError(TransferFailure(.shutdown), url: url)
            }
            if state.table.count + state.resting >= maxRuns {
                return .queueFull(limit: configuration.limits.queueLength, url: url)
            }
            state.enter(control, self)
            return nil
        }
    }

    /// A run has ended, or was never started.
    func leave(_ control: RunControl) {
        state.withLock { state in
            guard state.controls.removeValue(forKey: ObjectIdentifier(control)) != nil else { return IdleAction() }
            state.resting -= 1
            return state.becameIdle()
        }.act()
    }

    /// Registers a run that continues. If it continues from the plain transfer of `run`, it began when the counter of
    /// `cancelAll` calls had the run's number. Since its response arrived, `cancelAll` could not find it.
    func enter(_ control: RunControl, from run: Run? = nil) {
        let (isLate, isCancelled) = state.withLock { state in
            if state.controls[ObjectIdentifier(control)] == nil { state.enter(control, self) }
            if let run { state.decided(run) }
            return (state.isOver, run?.lastCancel.map { state.cancels.covers(control.tag, since: $0) } ?? false)
        }
        if isCancelled { control.end(.cancelled) }
        // It continues from a plain transfer whose response had arrived when all runs were ended.
        if isLate { control.end(.shutdown) }
    }

    /// The task of a run has found its response to be the last.
    func settled(_ run: AwaitedRun) {
        if !run.isUndecided { return }
        state.withLock { state in
            state.decided(run)
            return state.becameIdle()
        }.act()
    }

    /// Registers a group until it ends, or returns the reason for refusing it.
    func enter(_ group: GroupRun) -> RequestError? {
        let isRefused = state.withLock { state in
            state.groups[ObjectIdentifier(group)] = group
            return state.isClosed && !state.letsIn(group.outer != nil || isRefreshing)
        }
        return isRefused ? RequestError(.shutdown) : nil
    }

    /// A group has ended, including its callbacks.
    func leave(_ group: GroupRun) {
        state.withLock { state in
            state.groups[ObjectIdentifier(group)] = nil
            return state.becameIdle()
        }.act()
    }

    /// Changes the priority of all waiting members of a group, unless they or a nested group around them have their
    /// own, and of the members that start later.
    func setPriority(_ priority: RequestPriority, of group: GroupRun) {
        group.setPriority(priority)
        let (runs, controls) = state.withLock { ($0.table.all, Array($0.controls.values)) }
        for run in runs where run.inherited?.hasPriority(of: group) == true && run.id != 0 {
            transport.setRing(priority.ring, of: run.id)
        }
        for control in controls where control.inherited?.hasPriority(of: group) == true {
            control.setPriority(priority, in: self)
        }
    }

    /// A transfer represents its run in the table from now on.
    func goes() { state.withLock { $0.resting -= 1 } }

    /// The transfer of a run has left the table: the run counts on its own again.
    func rests() { state.withLock { $0.resting += 1 } }
}

extension AgentCore.State {
    fileprivate mutating func enter(_ control: RunControl, _ core: AgentCore) {
        controls[ObjectIdentifier(control)] = control
        resting += 1
        keep = core
    }

    /// The task of a run has decided about its response.
    fileprivate mutating func decided(_ run: Run) {
        if run.isUndecided { undecided -= 1 }
        run.isUndecided = false
    }
}

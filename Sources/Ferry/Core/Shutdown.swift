import Dispatch
import FerryTransport
import Synchronization

/// Somebody who waits for the agent to become idle. Its members change under the lock of the core only.
final class ShutdownWaiter: @unchecked Sendable {
    /// No more patience for what runs, and none for callbacks.
    fileprivate var isOver = false
    fileprivate var continuation: UnsafeContinuation<Void, Never>?
}

/// What is to be done after the lock was left, now that nothing runs.
struct IdleAction {
    fileprivate var keep: AgentCore?
    fileprivate var waiters: [UnsafeContinuation<Void, Never>] = []

    /// Wakes who waits, and lets go of the core, which may be its end.
    consuming func act() {
        for waiter in waiters { waiter.resume() }
    }
}

extension AgentCore.State {
    /// Whether a run may begin in the grace: a part of what is in flight may, a member of a group or a run of a
    /// refresh.
    func letsIn(_ isPart: Bool) -> Bool { isPart && !isOver }

    /// Looks whether all is done, and what follows.
    mutating func becameIdle() -> IdleAction {
        var action = IdleAction()
        if table.count > 0 || !controls.isEmpty { return action }
        action.keep = keep.take()
        if waiters.isEmpty { return action }
        waiters.removeAll { waiter in
            guard (undelivered == 0 && undecided == 0 && refreshes == 0 && groups.isEmpty) || waiter.isOver,
                let continuation = waiter.continuation.take()
            else { return false }
            action.waiters.append(continuation)
            return true
        }
        return action
    }
}

extension AgentCore {
    /// Returns when the agent takes no more runs, or the task is cancelled.
    func awaitClose() async {
        let waiter = ShutdownWaiter()
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isClosed || waiter.isOver { return true }
                    waiter.continuation = continuation
                    state.closeWaiters.append(waiter)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { state in
                waiter.isOver = true
                state.closeWaiters.removeAll { $0 === waiter }
                return waiter.continuation.take()
            }?.resume()
        }
    }

    /// It takes no more runs.
    private func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.closeWaiters = [] }
            return state.closeWaiters.compactMap { $0.continuation.take() }
        }
        for waiter in waiters { waiter.resume() }
    }

    func shutdown(grace: Duration) async {
        let waiter = ShutdownWaiter()
        close()
        let timer = DispatchWorkItem { [weak self] in self?.endGrace(of: waiter) }
        if grace <= .zero {
            endGrace(of: waiter)
        } else if grace < .seconds(1_000_000_000) {
            let (seconds, attoseconds) = grace.components
            let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
            timerQueue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds), execute: timer)
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                state.withLock { state in
                    waiter.continuation = continuation
                    state.waiters.append(waiter)
                    return state.becameIdle()
                }.act()
            }
        } onCancel: {
            endGrace(of: waiter)
        }
        timer.cancel()
        // Nothing is in flight any more that a refresh could be for.
        state.withLock { $0.isOver = true }
        transport.shutdown()
        await cache?.close()
    }

    /// What still runs is answered with `shutdown` by the transport; the waiter wakes when the last answer is there.
    private func endGrace(of waiter: ShutdownWaiter) {
        state.withLock { state in
            waiter.isOver = true
            state.isOver = true
            return state.becameIdle()
        }.act()
        for control in state.withLock({ Array($0.controls.values) }) { control.end(.shutdown) }
        tokens?.shutDown()
        transport.shutdown()
        // After their members: those end with the transport, and not with their group.
        for group in state.withLock({ Array($0.groups.values) }) { group.end(.shutdown) }
    }
}

import Dispatch
import FerryTransport
import Synchronization

/// A task that waits for the agent to become idle. Its members change only under the core's lock.
final class ShutdownWaiter: @unchecked Sendable {
    /// The grace period is over, for runs and for callbacks.
    fileprivate var isOver = false
    fileprivate var continuation: UnsafeContinuation<Void, Never>?
    /// Whether the grace period of another shutdown counts for it, too.
    fileprivate let follows: Bool

    init(follows: Bool = false) { self.follows = follows }
}

/// What to do after releasing the lock, now that nothing is active.
struct IdleAction {
    fileprivate var keep: AgentCore?
    fileprivate var waiters: [UnsafeContinuation<Void, Never>] = []

    /// Resumes the waiting tasks, and releases the core, which may deallocate it.
    consuming func act() {
        for waiter in waiters { waiter.resume() }
    }
}

extension AgentCore.State {
    /// Whether a run may start in the grace period: only a part of what is active may, a member of a group or a request
    /// of a token refresh.
    func letsIn(_ isPart: Bool) -> Bool { isPart && !isOver }

    /// Checks whether everything has ended, and what to do then.
    mutating func becameIdle() -> IdleAction {
        var action = IdleAction()
        if table.count > 0 || controls.count > waitingForApplication.count { return action }
        if controls.isEmpty { action.keep = letGo() }
        if waiters.isEmpty { return action }
        waiters.removeAll { waiter in
            let isIdle =
                undelivered == 0 && undecided == 0 && refreshes == 0 && groups.isEmpty && controls.isEmpty
            let mayReturn = isIdle || waiter.isOver || (waiter.follows && isOver)
            guard mayReturn, let continuation = waiter.continuation.take() else { return false }
            action.waiters.append(continuation)
            return true
        }
        return action
    }
}

extension AgentCore {
    /// Returns when the agent refuses new runs, or when the task is cancelled.
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

    /// Refuses new runs from now on.
    private func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            closed.store(true, ordering: .releasing)
            defer { state.closeWaiters = [] }
            return state.closeWaiters.compactMap { $0.continuation.take() }
        }
        for waiter in waiters { waiter.resume() }
    }

    /// `follows` is for a shutdown that leaves the grace period to others.
    func shutdown(grace: Duration, follows: Bool = false) async {
        let waiter = ShutdownWaiter(follows: follows)
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
        // No active run is left that a refresh could be for.
        state.withLock { $0.isOver = true }
        transport.shutdown()
        await cache?.close()
    }

    /// The transport ends the remaining runs with `shutdown`; the waiter is resumed after the last result.
    private func endGrace(of waiter: ShutdownWaiter) {
        state.withLock { state in
            waiter.isOver = true
            state.isOver = true
            return state.becameIdle()
        }.act()
        for control in state.withLock({ Array($0.controls.values) }) { control.end(.shutdown) }
        tokens?.shutDown()
        transport.shutdown()
        // After their members, which end with the transport and not with their group.
        for group in state.withLock({ Array($0.groups.values) }) { group.end(.shutdown) }
    }
}

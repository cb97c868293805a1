import Dispatch
import FerrySynchronization
import FerryTransport

/// A task that waits for the agent to become idle. Its members change only under the core's lock.
final class ShutdownWaiter: @unchecked Sendable {
    /// The grace period is over, for runs and for callbacks.
    var isOver = false
    var continuation: UnsafeContinuation<Void, Never>?
    /// Whether the grace period of another shutdown counts for it, too.
    let follows: Bool

    init(follows: Bool = false) { self.follows = follows }
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

internal import CFerry
import Synchronization

/// The clock of one loop: calls back on the loop's thread at a time, to the microsecond.
///
/// Who sends at given times, or measures, does so here without a wake-up of another thread.
package final class LoopClock: Sendable {
    private struct State {
        /// `nil` before the loop starts and after it has ended.
        var loop: LoopPointer?
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let jobs: LoopExecutor

    /// Runs tasks on the loop's thread.
    package var executor: any TaskExecutor { jobs }

    init(executor: LoopExecutor) { jobs = executor }

    /// Sets what is called on the loop's thread when the time of ``wake(at:)`` has come; `nil` for nothing. Any
    /// thread.
    package func onTime(_ action: (@Sendable () -> Void)?) {
        state.withLock { $0.action = action }
    }

    /// Has the action called once, when the monotonic clock reaches this time in nanoseconds, or soon where it has
    /// passed. Each call replaces the one before it. On the loop's thread only.
    package func wake(at nanoseconds: UInt64) {
        precondition(isCurrent, "the clock of a loop is set on the loop's thread")
        guard let loop = state.withLock({ $0.loop }) else { return }
        // Not under the lock, and still there: only this thread lets go of it.
        ferry_set_alarm(loop.raw, nanoseconds)
    }

    /// Whether this is called on the loop's thread.
    package var isCurrent: Bool { Loop.currentContext?.clock === self }

    func connect(_ loop: LoopPointer) {
        state.withLock { $0.loop = loop }
    }

    /// On the loop's thread.
    func ring() {
        state.withLock { $0.action }?()
    }

    func disconnect() {
        state.withLock { $0 = State() }
    }
}

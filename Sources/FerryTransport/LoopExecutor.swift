internal import CFerry
import Dispatch
import FerrySynchronization

/// Runs the jobs of tasks on an event loop's thread, at the end of its turn, so that an awaiting task never changes
/// threads.
///
/// It is for short code that does not block: while a job runs, the loop carries no transfers. When the loop has ended,
/// jobs go to the global queue instead, so that no task is left hanging.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Empty; it keeps the capacity of an earlier turn.
        var spare: [UnownedJob] = []
        /// `nil` before the loop starts and after it has ended.
        var loop: LoopPointer?
    }

    private let state = Mutex(State())

    func connect(_ loop: LoopPointer) {
        state.withLock { $0.loop = loop }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isConnected = state.withLock { state in
            guard let loop = state.loop else { return false }
            state.jobs.append(job)
            // Under the lock: `disconnect` comes before the end of the loop, so the loop still exists here.
            if state.jobs.count == 1 { ferry_call(loop.raw) }
            return true
        }
        if !isConnected { runElsewhere(job) }
    }

    /// Runs the jobs, on the loop's thread. Jobs that these enqueue are left for the next turn.
    func run() {
        var jobs = state.withLock { state in
            swap(&state.jobs, &state.spare)
            return state.spare.moved()
        }
        for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        jobs.removeAll(keepingCapacity: true)
        state.withLock { $0.spare = jobs }
    }

    func disconnect() {
        let jobs = state.withLock { state in
            state.loop = nil
            let jobs = state.jobs
            state.jobs = []
            return jobs
        }
        for job in jobs { runElsewhere(job) }
    }

    private func runElsewhere(_ job: UnownedJob) {
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

extension Array {
    /// Moves the array out, so that it has a single owner and its capacity can be reused.
    fileprivate mutating func moved() -> [Element] {
        let moved = self
        self = []
        return moved
    }
}

/// The clock of one loop: it calls back on the loop's thread at a given time, accurate to the microsecond.
///
/// Code that sends or measures at given times uses it without waking another thread.
package final class LoopClock: Sendable {
    private struct State {
        /// `nil` before the loop starts and after it has ended.
        var loop: LoopPointer?
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let jobs: LoopExecutor

    /// An executor that runs tasks on the loop's thread.
    package var executor: any TaskExecutor { jobs }

    init(executor: LoopExecutor) { jobs = executor }

    /// Sets the action called on the loop's thread when the time of ``wake(at:)`` has come; `nil` for none. Any thread.
    package func onTime(_ action: (@Sendable () -> Void)?) {
        state.withLock { $0.action = action }
    }

    /// Requests one call of the action when the monotonic clock reaches this time in nanoseconds, or soon if it has
    /// passed. Each call replaces the previous one. On the loop's thread only.
    package func wake(at nanoseconds: UInt64) {
        precondition(isCurrent, "the clock of a loop is set on the loop's thread")
        guard let loop = state.withLock({ $0.loop }) else { return }
        // Not under the lock, and still valid: only this thread removes it.
        ferry_set_alarm(loop.raw, nanoseconds)
    }

    /// Whether this is called on the event loop's thread.
    package var isCurrent: Bool { Loop.currentContext?.clock === self }

    func connect(_ loop: LoopPointer) {
        state.withLock { $0.loop = loop }
    }

    /// Calls the action, on the loop's thread.
    func ring() {
        state.withLock { $0.action }?()
    }

    func disconnect() {
        state.withLock { $0 = State() }
    }
}

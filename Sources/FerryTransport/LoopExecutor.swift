internal import CFerry
import Dispatch
import Synchronization

/// Runs the jobs of tasks on an event loop's thread, at the end of its turn, so that an awaiting task never changes
/// threads.
///
<<<<<<< HEAD
/// For short code that does not block: while a job runs, the loop does nothing else. After the end of the loop, jobs go
/// to the global queue, so that no task hangs.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// An empty array with the capacity of an earlier turn.
=======
/// It is for short code that does not block: while a job runs, the loop carries no transfers. When the loop has ended,
/// jobs go to the global queue instead, so that no task is left hanging.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Empty; it keeps the capacity of an earlier turn.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
            // Under the lock, because `disconnect` is called before the loop is freed, so the loop still exists here.
=======
            // Under the lock: `disconnect` comes before the end of the loop, so the loop still exists here.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
            if state.jobs.count == 1 { ferry_call(loop.raw) }
            return true
        }
        if !isConnected { runElsewhere(job) }
    }

<<<<<<< HEAD
    /// On the event loop's thread. Jobs that the jobs enqueue run in the next turn.
=======
    /// Runs the jobs, on the loop's thread. Jobs that these enqueue are left for the next turn.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
    /// Returns the array and leaves an empty one, so that it has one owner and its capacity can be reused.
=======
    /// Moves the array out, so that it has a single owner and its capacity can be reused.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    fileprivate mutating func moved() -> [Element] {
        let moved = self
        self = []
        return moved
    }
}

<<<<<<< HEAD
/// The clock of one event loop: calls an action on the loop's thread at a given time, in microseconds.
///
/// Code that sends at given times, or measures, does so here without waking another thread.
=======
/// The clock of one loop: it calls back on the loop's thread at a given time, accurate to the microsecond.
///
/// Code that sends or measures at given times uses it without waking another thread.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
package final class LoopClock: Sendable {
    private struct State {
        /// `nil` before the loop starts and after it has ended.
        var loop: LoopPointer?
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let jobs: LoopExecutor

<<<<<<< HEAD
    /// Runs tasks on the event loop's thread.
=======
    /// An executor that runs tasks on the loop's thread.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var executor: any TaskExecutor { jobs }

    init(executor: LoopExecutor) { jobs = executor }

<<<<<<< HEAD
    /// Sets the action that is called on the event loop's thread at the time of ``wake(at:)``; `nil` for none. Any
    /// thread.
=======
    /// Sets the action called on the loop's thread when the time of ``wake(at:)`` has come; `nil` for none. Any thread.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package func onTime(_ action: (@Sendable () -> Void)?) {
        state.withLock { $0.action = action }
    }

<<<<<<< HEAD
    /// Calls the action once, when the monotonic clock reaches this time in nanoseconds, or soon if it has passed. Each
    /// call replaces the one before it. On the event loop's thread only.
    package func wake(at nanoseconds: UInt64) {
        precondition(isCurrent, "the clock of a loop is set on the loop's thread")
        guard let loop = state.withLock({ $0.loop }) else { return }
        // Not under the lock, but the loop still exists, because only this thread releases it.
=======
    /// Requests one call of the action when the monotonic clock reaches this time in nanoseconds, or soon if it has
    /// passed. Each call replaces the previous one. On the loop's thread only.
    package func wake(at nanoseconds: UInt64) {
        precondition(isCurrent, "the clock of a loop is set on the loop's thread")
        guard let loop = state.withLock({ $0.loop }) else { return }
        // Not under the lock, and still valid: only this thread removes it.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        ferry_set_alarm(loop.raw, nanoseconds)
    }

    /// Whether this is called on the event loop's thread.
    package var isCurrent: Bool { Loop.currentContext?.clock === self }

    func connect(_ loop: LoopPointer) {
        state.withLock { $0.loop = loop }
    }

<<<<<<< HEAD
    /// On the event loop's thread.
=======
    /// Calls the action, on the loop's thread.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    func ring() {
        state.withLock { $0.action }?()
    }

    func disconnect() {
        state.withLock { $0 = State() }
    }
}

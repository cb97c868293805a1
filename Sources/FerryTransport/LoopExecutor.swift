internal import CFerry
import Dispatch
import Synchronization

/// Runs the jobs of tasks on an event loop's thread, at the end of its turn, so that an awaiting task never changes
/// threads.
///
/// For short code that does not block: while a job runs, the loop does nothing else. After the end of the loop, jobs go
/// to the global queue, so that no task hangs.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// An empty array with the capacity of an earlier turn.
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
            // Under the lock, because `disconnect` is called before the loop is freed, so the loop still exists here.
            if state.jobs.count == 1 { ferry_call(loop.raw) }
            return true
        }
        if !isConnected { runElsewhere(job) }
    }

    /// On the event loop's thread. Jobs that the jobs enqueue run in the next turn.
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
    /// Returns the array and leaves an empty one, so that it has one owner and its capacity can be reused.
    fileprivate mutating func moved() -> [Element] {
        let moved = self
        self = []
        return moved
    }
}

/// The clock of one event loop: calls an action on the loop's thread at a given time, in microseconds.
///
/// Code that sends at given times, or measures, does so here without waking another thread.
package final class LoopClock: Sendable {
    private struct State {
        /// `nil` before the loop starts and after it has ended.
        var loop: LoopPointer?
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let jobs: LoopExecutor

    /// Runs tasks on the event loop's thread.
    package var executor: any TaskExecutor { jobs }

    init(executor: LoopExecutor) { jobs = executor }

    /// Sets the action that is called on the event loop's thread at the time of ``wake(at:)``; `nil` for none. Any
    /// thread.
    package func onTime(_ action: (@Sendable () -> Void)?) {
        state.withLock { $0.action = action }
    }

    /// Calls the action once, when the monotonic clock reaches this time in nanoseconds, or soon if it has passed. Each
    /// call replaces the one before it. On the event loop's thread only.
    package func wake(at nanoseconds: UInt64) {
        precondition(isCurrent, "the clock of a loop is set on the loop's thread")
        guard let loop = state.withLock({ $0.loop }) else { return }
        // Not under the lock, but the loop still exists, because only this thread releases it.
        ferry_set_alarm(loop.raw, nanoseconds)
    }

    /// Whether this is called on the event loop's thread.
    package var isCurrent: Bool { Loop.currentContext?.clock === self }

    func connect(_ loop: LoopPointer) {
        state.withLock { $0.loop = loop }
    }

    /// On the event loop's thread.
    func ring() {
        state.withLock { $0.action }?()
    }

    func disconnect() {
        state.withLock { $0 = State() }
    }
}

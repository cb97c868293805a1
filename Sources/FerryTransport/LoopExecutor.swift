internal import CFerry
import Dispatch
import Synchronization

/// Runs the jobs of tasks on a loop's thread, at the end of its turn, so that an awaiting task never changes threads.
///
/// For short code that does not block: while a job runs, the loop carries nothing. When the loop has ended, jobs go to
/// the global queue instead, so that no task is left hanging.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Empty, with the space of an earlier turn.
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
            // Under the lock: `disconnect` comes before the loop goes, so the loop is still there to be called.
            if state.jobs.count == 1 { ferry_call(loop.raw) }
            return true
        }
        if !isConnected { runElsewhere(job) }
    }

    /// On the loop's thread. What the jobs themselves enqueue is left for the next turn.
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
    /// The array, and nothing left behind: it has one owner, and its space can be used again.
    fileprivate mutating func moved() -> [Element] {
        let moved = self
        self = []
        return moved
    }
}

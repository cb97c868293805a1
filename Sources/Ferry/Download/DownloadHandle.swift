import Synchronization

/// The task of a download for those who are told of its progress. It does not hold the run, which holds them.
final class DownloadHandle: Sendable {
    private struct State {
        weak var run: CallbackRun?
        weak var download: Download?
        /// Until it was given out.
        var made: DownloadTask?
    }

    private let state = Mutex(State())

    func set(_ task: DownloadTask) {
        state.withLock { $0 = State(run: task.run, download: task.download, made: task) }
    }

    /// `nil` when the run has gone.
    var task: DownloadTask? {
        state.withLock { state in
            guard let run = state.run, let download = state.download else { return nil }
            return DownloadTask(run: run, download: download)
        }
    }

    /// Once.
    var made: DownloadTask {
        state.withLock { state in
            guard let made = state.made.take() else { preconditionFailure("no task was made") }
            return made
        }
    }
}

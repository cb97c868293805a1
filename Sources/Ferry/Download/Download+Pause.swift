import FerryTransport
import Synchronization

extension Download {
    /// Leaves the sockets unread.
    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.paused = state.pouring
            for run in state.pouring { run.core.transport.pause(run.id) }
        }
    }

    /// Reads them again.
    func resume() {
        state.withLock { state in
            state.isPaused = false
            for run in state.pouring { run.core.transport.resume(run.id) }
        }
    }

    var isPaused: Bool { state.withLock { $0.isPaused } }

    /// Sends the body of a run to the part. Under the lock, so that a pause comes behind it or is seen here.
    func pour(_ run: StreamRun, to sink: TransferSink) {
        state.withLock { state in
            state.pouring.append(run)
            run.core.transport.write(run.id, to: sink)
            if state.isPaused {
                state.paused.append(run)
                run.core.transport.pause(run.id)
            }
        }
    }

    /// The body of a run has ended. Whether it was paused meanwhile.
    func hasPoured(_ run: StreamRun) -> Bool {
        state.withLock { state in
            state.pouring.removeAll { $0 === run }
            let count = state.paused.count
            state.paused.removeAll { $0 === run }
            return state.paused.count < count
        }
    }

    /// Whether a run that was paused may have broken off because that took long, and the rest can be asked for.
    func excusesPause(_ failure: TransferFailure) -> Bool {
        switch failure.code {
        case .connectionReset, .incompleteBody, .http2Stream: state.withLock { $0.metadata.validator != nil }
        default: false
        }
    }
}

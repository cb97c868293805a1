import FerryTransport
import Synchronization

extension Download {
    /// Leaves the sockets unread.
    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.wasPaused = true
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
            if state.isPaused { run.core.transport.pause(run.id) }
        }
    }

    func hasPoured(_ run: StreamRun) { state.withLock { $0.pouring.removeAll { $0 === run } } }

    /// Whether a run that broke off may have done so because it was paused for long. Says so once.
    func excusesPause(_ failure: TransferFailure) -> Bool {
        switch failure.code {
        case .connectionReset, .incompleteBody, .http2Stream: break
        default: return false
        }
        return state.withLock { state in
            defer { state.wasPaused = state.isPaused }
            return state.wasPaused && state.metadata.validator != nil
        }
    }
}

import Ferry
import FerrySynchronization
package import FerryTransport

extension StubTransport: Transporting {
    package func attach(_ receiver: any TransferReceiver) { state.withLock { $0.receiver = receiver } }

    package func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        let reportsStart = request.reportsStart
        let pull = Pull(request)
        var seen = Request(request)
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
            if state.isShutDown { return nil }
            seen.number = state.requests.count + 1
            state.requests.append(seen)
            state.events.append(.submitted(seen.number))
            state.open[id] = Entry(request: seen, reportsStart: reportsStart, pull: pull)
            state.arrived.append(id)
            return state.takeWoken()
        }
        guard let waiters else { throw TransferFailure(.shutdown) }
        for waiter in waiters { waiter.resume() }
        scheduleTurn()
    }

    package func cancel(_ id: TransferID) {
        state.withLock { state in
            guard let entry = state.open[id] else { return }
            state.events.append(.cancelled(entry.request.number))
            state.finish(id, with: .failure(.cancelled))
        }
        scheduleTurn()
    }

    package func resumeSending(_ id: TransferID) {
        state.withLock { $0.resumed.append(id) }
        scheduleTurn()
    }

    package func setRing(_ ring: PriorityRing, of id: TransferID) {
        let priority = RequestPriority(ring)
        state.withLock { state in
            guard let number = state.open[id]?.request.number else { return }
            state.open[id]?.request.priority = priority
            state.events.append(.priorityChanged(number, priority))
        }
    }

    package func shutdown() {
        state.withLock { state in
            if state.isShutDown { return }
            state.isShutDown = true
            state.events.append(.shutdown)
            for id in state.open.keys.sorted() { state.finish(id, with: .failure(.shutdown)) }
        }
        scheduleTurn()
    }

    package func nextExecutor() -> (any TaskExecutor)? { nil }

    package var statistics: TransportStatistics {
        state.withLock { state in
            var made = TransportStatistics()
            made.waiting = UInt64(state.arrived.count)
            made.running = UInt64(max(state.open.count - state.arrived.count, 0))
            made.submitted = UInt64(state.requests.count)
            made.finished = state.finished
            made.turns = UInt64(state.handOvers.count)
            return made
        }
    }
}

extension RequestPriority {
    fileprivate init(_ ring: PriorityRing) {
        self =
            switch ring {
            case .low: .low
            case .normal: .normal
            case .high: .high
            }
    }
}

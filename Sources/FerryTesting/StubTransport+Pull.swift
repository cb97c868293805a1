import Ferry
import FerryTransport
import Synchronization

extension StubTransport {
    /// A body that is given out piece by piece.
    struct Pull {
        var length: UInt64?
        var bytes: [UInt8] = []

        init?(_ request: borrowing TransferRequest) {
            guard case .pull(let length) = request.body else { return nil }
            self.length = length
        }

        /// No byte beyond the announced length is asked for.
        fileprivate var wanted: Int {
            min(64 * 1024, length.map { Int(clamping: $0) - bytes.count } ?? .max)
        }
    }

    /// [queue] Pulls as much as there is; the script is asked when the body is complete.
    func pull(_ id: TransferID, _ receiver: (any TransferReceiver)?) {
        guard let receiver, var pull = state.withLock({ $0.open[id]?.pull }) else { return }
        var fill = TransferFill.end
        while pull.wanted > 0 {
            let piece = [UInt8](unsafeUninitializedCapacity: pull.wanted) { space, count in
                fill = receiver.transfer(id, fill: UnsafeMutableRawBufferPointer(space))
                if case .bytes(let got) = fill { count = got }
            }
            guard case .bytes = fill else { break }
            pull.bytes += piece
            fill = .end
        }
        switch fill {
        case .bytes, .later: state.withLock { $0.open[id]?.pull = pull }
        case .end where pull.length == nil || pull.wanted == 0: complete(id, pull.bytes)
        case .end, .failed, .piece: state.withLock { $0.finish(id, with: .failure(.uploadSource)) }
        }
    }

    private func complete(_ id: TransferID, _ body: [UInt8]) {
        let request = state.withLock { state -> Request? in
            state.open[id]?.pull = nil
            state.open[id]?.request.body = body
            guard let request = state.open[id]?.request else { return nil }
            state.requests[request.number - 1].body = body
            return request
        }
        if let request { answer(id, request) }
    }
}

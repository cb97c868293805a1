import FerryTransport
import Synchronization

/// Stands between the core of an agent and its transport, and tells a ``Recorder`` of every exchange.
final class RecordingTransport: Transporting, TransferReceiver {
    private struct State {
        weak var receiver: (any TransferReceiver)?
        var exchanges: [TransferID: RecordedExchange] = [:]
    }

    private let transport: any Transporting
    private let recorder: Recorder
    private let state = Mutex(State())

    init(_ transport: any Transporting, _ recorder: Recorder) {
        self.transport = transport
        self.recorder = recorder
    }

    private var receiver: (any TransferReceiver)? { state.withLock { $0.receiver } }

    // MARK: To the transport

    func attach(_ receiver: any TransferReceiver) {
        state.withLock { $0.receiver = receiver }
        transport.attach(self)
    }

    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        // Nothing is exchanged: connections are opened ahead.
        if request.connections != nil { return try transport.submit(request, id: id) }
        let exchange = RecordedExchange(request, number: recorder.begin(), limit: recorder.maxBodyBytes)
        // Before it is handed over, as its result may come before that returns.
        state.withLock { $0.exchanges[id] = exchange }
        do throws(TransferFailure) {
            try transport.submit(request, id: id)
        } catch {
            state.withLock { _ = $0.exchanges.removeValue(forKey: id) }
            throw error
        }
    }

    func chooseLoop() -> UInt8 { transport.chooseLoop() }
    func cancel(_ id: TransferID) { transport.cancel(id) }
    func resume(_ id: TransferID) { transport.resume(id) }
    func resumeSending(_ id: TransferID) { transport.resumeSending(id) }
    func pause(_ id: TransferID) { transport.pause(id) }
    func write(_ id: TransferID, to sink: TransferSink) {
        state.withLock { $0.exchanges[id]?.received = nil }
        transport.write(id, to: sink)
    }
    func setRing(_ ring: PriorityRing, of id: TransferID) { transport.setRing(ring, of: id) }
    func shutdown() { transport.shutdown() }
    func nextExecutor() -> (any TaskExecutor)? { transport.nextExecutor() }
    var clocks: [LoopClock] { transport.clocks }
    var statistics: TransportStatistics { transport.statistics }
    var cookies: [TransferCookie] { transport.cookies }
    var hasCookies: Bool { transport.hasCookies }
    func setCookie(_ cookie: TransferCookie) { transport.setCookie(cookie) }
    func removeCookies() { transport.removeCookies() }

    // MARK: From the transport

    func transfersFinished(_ results: [TransferResult]) {
        for result in results {
            let exchange = state.withLock { $0.exchanges.removeValue(forKey: result.id) }
            if let exchange { recorder.end(exchange, result) }
        }
        receiver?.transfersFinished(results)
    }

    func trustChanged(fault: String?) { receiver?.trustChanged(fault: fault) }

    func transferStarted(_ id: TransferID) { receiver?.transferStarted(id) }

    func transfer(_ id: TransferID, receivedHead head: TransferResult) {
        state.withLock { $0.exchanges[id]?.isStreamed = true }
        receiver?.transfer(id, receivedHead: head)
    }

    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow {
        state.withLock { $0.exchanges[id]?.appendReceived(chunk, limit: recorder.maxBodyBytes) }
        return receiver?.transfer(id, receivedChunk: chunk) ?? .proceed
    }

    func transfer(_ id: TransferID, written count: UInt64) { receiver?.transfer(id, written: count) }

    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let fill = receiver?.transfer(id, fill: space) ?? .failed
        state.withLock { state in
            switch fill {
            case .bytes(let count):
                let bytes = UnsafeRawBufferPointer(rebasing: space[..<count])
                state.exchanges[id]?.appendSent(bytes, limit: recorder.maxBodyBytes)
            case .piece: state.exchanges[id]?.body = nil
            case .end, .later, .failed: break
            }
        }
        return fill
    }
}

import FerryTransport

/// The transport of an agent that has a network. One that cannot be made fails every run, each with the reason.
func makeNetworkTransport(_ configuration: NetworkConfiguration) -> any Transporting {
    do throws(TransferFailure) {
        return try Transport(configuration.checkedTransport())
    } catch {
        return FailedTransport(error)
    }
}

/// Stands where no transport could be made.
private final class FailedTransport: Transporting {
    private let failure: TransferFailure

    init(_ failure: TransferFailure) { self.failure = failure }

    func attach(_ receiver: any TransferReceiver) {}
    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) { throw failure }
    func cancel(_ id: TransferID) {}
    func resumeSending(_ id: TransferID) {}
    func setRing(_ ring: PriorityRing, of id: TransferID) {}
    func shutdown() {}
    func nextExecutor() -> (any TaskExecutor)? { nil }
    var statistics: TransportStatistics { TransportStatistics() }
}

#if FERRY_TSAN
import FerryTransport

/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; FerryTransport says why.
struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let base: FerryTransport.Mutex<Value>

    init(_ initial: consuming sending Value) { base = FerryTransport.Mutex(initial) }

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock(body)
    }
}
#endif

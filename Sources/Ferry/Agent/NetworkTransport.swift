package import FerryTransport

/// The transport of an agent that has a network. One that cannot be made fails every run, each with the reason.
func makeNetworkTransport(_ configuration: TransportConfiguration) -> any Transporting {
    do throws(TransferFailure) {
        return try Transport(configuration)
    } catch {
        return FailedTransport(error)
    }
}

/// Stands where no transport could be made.
package final class FailedTransport: Transporting {
    private let failure: TransferFailure

    package init(_ failure: TransferFailure) { self.failure = failure }

    package func attach(_ receiver: any TransferReceiver) {}
    package func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) { throw failure }
    package func cancel(_ id: TransferID) {}
    package func resumeSending(_ id: TransferID) {}
    package func setRing(_ ring: PriorityRing, of id: TransferID) {}
    package func shutdown() {}
    package func nextExecutor() -> (any TaskExecutor)? { nil }
    package var statistics: TransportStatistics { TransportStatistics() }
}

import Ferry
import FerrySynchronization

/// The agent of a round, until it is released.
final class RaceAgent: Sendable {
    private let state: Mutex<NetworkAgent?>

    init(_ configuration: NetworkConfiguration) { state = Mutex(NetworkAgent(configuration: configuration)) }

    var agent: NetworkAgent? { state.withLock { $0 } }
    func drop() { state.withLock { $0 = nil } }
}

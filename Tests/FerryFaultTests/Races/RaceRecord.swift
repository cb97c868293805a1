import Ferry
import FerrySynchronization

@testable import FerryTestSupport

/// The outcomes of the runs of one round: what was wrong, and what still exists. It also observes the agent.
final class RaceRecord: RequestObserver {
    private enum Stage { case started, stopping, stopped }

    private struct State {
        var begun = 0
        /// Runs that have not ended.
        var open: [ObjectIdentifier: String] = [:]
        /// Tokens that are still held.
        var alive = 0
        var stages: [UInt64: Stage] = [:]
        var isOver = false
        var isSealed = false
        var faults: [String] = []
    }

    private let state = Mutex(State())

    var begun: Int { state.withLock { $0.begun } }
    var open: [String] { state.withLock { Array($0.open.values) } }
    var alive: Int { state.withLock { $0.alive } }
    var faults: [String] { state.withLock { $0.faults } }

    /// Whether every run that observers were told of has stopped.
    var isStopped: Bool { state.withLock { $0.stages.values.allSatisfy { $0 == .stopped } } }

    /// Whether all tasks of the round have ended.
    var isOver: Bool { state.withLock { $0.isOver } }
    func finish() { state.withLock { $0.isOver = true } }

    /// The agent is gone: later reports are errors.
    func seal() { state.withLock { $0.isSealed = true } }

    func add(fault: String) { state.withLock { $0.faults.append(fault) } }

    func begin(_ token: RaceToken) {
        state.withLock { state in
            state.begun += 1
            state.alive += 1
            state.open[ObjectIdentifier(token)] = token.name
        }
    }

    func end(_ token: RaceToken) { state.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(token)) } }
    func forget() { state.withLock { $0.alive -= 1 } }

    private func move(_ run: RunInfo, from old: Stage?, to new: Stage) {
        state.withLock { state in
            if state.isSealed { state.faults.append("\(new) without an agent: \(run)") }
            let stage = state.stages.updateValue(new, forKey: run.id)
            if stage != old { state.faults.append("\(new) after \(stage as Any): \(run)") }
        }
    }

    func willStart(_ run: RunInfo) { move(run, from: nil, to: .started) }
    func willStop(_ run: RunInfo, _ outcome: RunOutcome) { move(run, from: .started, to: .stopping) }
    func didStop(_ run: RunInfo, _ outcome: RunOutcome) { move(run, from: .stopping, to: .stopped) }
}

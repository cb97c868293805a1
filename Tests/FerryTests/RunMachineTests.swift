import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RunMachineTests {
    private enum Step: CaseIterable { case started, answered, cancel, finish, fail }

    private func machine(in state: RunState) -> RunMachine {
        var machine = RunMachine()
        switch state {
        case .waiting: break
        case .running: machine.started()
        case .finishing: machine.answered()
        case .finished, .failed:
            machine.answered()
            _ = machine.deliver(state)
        case .cancelled: _ = machine.cancel()
        }
        #expect(machine.state == state)
        return machine
    }

    @Test func everyTransitionIsInTheTable() {
        let table: [RunState: [RunState]] = [
            //          started    answered    cancel      finish      fail
            .waiting: [.running, .finishing, .cancelled, .finished, .failed],
            .running: [.running, .finishing, .cancelled, .finished, .failed],
            .finishing: [.finishing, .finishing, .cancelled, .finished, .failed],
            .finished: [.finished, .finished, .finished, .finished, .finished],
            .failed: [.failed, .failed, .failed, .failed, .failed],
            .cancelled: [.cancelled, .cancelled, .cancelled, .cancelled, .cancelled],
        ]
        for (from, row) in table {
            for (step, to) in zip(Step.allCases, row) {
                var machine = machine(in: from)
                switch step {
                case .started: machine.started()
                case .answered: machine.answered()
                case .cancel: _ = machine.cancel()
                case .finish: _ = machine.deliver(.finished)
                case .fail: _ = machine.deliver(.failed)
                }
                #expect(machine.state == to, "\(from) by \(step)")
            }
        }
    }

    @Test func onlyTheFirstCancelStopsTheTransfer() {
        var machine = RunMachine()
        #expect(machine.cancel() == .stopTransfer)
        #expect(machine.cancel() == .none)
    }

    @Test func cancelAfterTheAnswerReplacesTheResult() {
        var machine = machine(in: .finishing)
        #expect(machine.cancel() == .replaceResult)
        #expect(machine.deliver(.finished) == .cancelled)
        #expect(!machine.isDelivered, "it comes again, as cancelled")
        #expect(machine.deliver(.cancelled) == .result)
        #expect(machine.state == .cancelled)
    }

    @Test func resultsAreDeliveredOnce() {
        var machine = machine(in: .finished)
        #expect(machine.deliver(.finished) == .none)
        #expect(machine.cancel() == .none)
    }
}

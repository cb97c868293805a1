import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A run gets a 401.
func unauthorized(
    _ machine: inout RefreshMachine, _ run: UInt64, generation: UInt64 = 0, wasReplayed: Bool = false,
    isRefresh: Bool = false
) -> RefreshMachine.Action {
    machine.unauthorized(run, generation: generation, wasReplayed: wasReplayed, isRefresh: isRefresh)
}

/// Whether these runs were released, in their order, with these actions.
func same(
    _ released: [(run: UInt64, action: RefreshMachine.Action)], _ expected: [UInt64: RefreshMachine.Action]
)
    -> Bool
{
    released.map(\.run) == expected.keys.sorted() && released.allSatisfy { expected[$0.run] == $0.action }
}

@Suite struct RefreshMachineTests {
    @Test func runIsSentWithTheTokenOfTheMoment() {
        var machine = RefreshMachine()
        let action = machine.starting(1, isRefresh: false)
        #expect(action == .send(generation: 0))
        #expect(!machine.isRefreshing)
    }

    @Test func oneRefreshServesAllThatFailedWithTheSameToken() {
        var machine = RefreshMachine()
        var actions: [RefreshMachine.Action] = []
        for run in UInt64(1)...100 { actions.append(unauthorized(&machine, run)) }
        #expect(actions.first == .startRefresh(1))
        #expect(actions.dropFirst().allSatisfy { $0 == .wait })
        #expect(machine.waitingCount == 100)
        let released = machine.refreshed(1)
        #expect(released.map(\.run) == Array(1...100))
        #expect(released.allSatisfy { $0.action == .replay(generation: 1) })
        #expect(machine.generation == 1)
        #expect(machine.waitingCount == 0)
        #expect(!machine.isRefreshing)
    }

    @Test func runThatComesWhileRefreshingWaits() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        let action = machine.starting(2, isRefresh: false)
        #expect(action == .wait)
        let released = machine.refreshed(1)
        #expect(same(released, [1: .replay(generation: 1), 2: .send(generation: 1)]))
    }

    @Test func oldNewsIsReplayedAtOnceWithoutARefresh() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        let late = unauthorized(&machine, 2, generation: 0)
        #expect(late == .replay(generation: 1))
        #expect(!machine.isRefreshing)
        let fresh = unauthorized(&machine, 3, generation: 1)
        #expect(fresh == .startRefresh(2))
    }

    @Test func oldNewsWaitsWhileTheNextRefreshIsUnderWay() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        _ = unauthorized(&machine, 2, generation: 1)
        let late = unauthorized(&machine, 3, generation: 0)
        #expect(late == .wait)
        let released = machine.refreshed(2)
        #expect(same(released, [2: .replay(generation: 2), 3: .replay(generation: 2)]))
    }

    @Test func failedRefreshReplaysNobody() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = unauthorized(&machine, 2)
        _ = machine.starting(3, isRefresh: false)
        let released = machine.refreshFailed(1)
        #expect(same(released, [1: .giveUp, 2: .giveUp, 3: .giveUp]))
        #expect(machine.generation == 1)
    }

    @Test func afterAFailedRefreshTheNextThatIsSentStartsAnother() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshFailed(1)
        let sent = machine.starting(2, isRefresh: false)
        #expect(sent == .send(generation: 1))
        let again = unauthorized(&machine, 2, generation: 1)
        #expect(again == .startRefresh(2))
        let released = machine.refreshed(2)
        #expect(same(released, [2: .replay(generation: 2)]))
    }

    @Test func a401ThatWasOnItsWayDuringAFailedRefreshStartsNoOther() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshFailed(1)
        let late = unauthorized(&machine, 2, generation: 0)
        #expect(late == .giveUp)
        #expect(!machine.isRefreshing)
        // It waits for a refresh that others have started since, and uses its token.
        _ = unauthorized(&machine, 3, generation: 1)
        let during = unauthorized(&machine, 4, generation: 0)
        #expect(during == .wait)
        let released = machine.refreshed(2)
        #expect(same(released, [3: .replay(generation: 2), 4: .replay(generation: 2)]))
        let old = unauthorized(&machine, 5, generation: 0)
        #expect(old == .replay(generation: 2))
    }

    @Test func aFailedRefreshLeavesTheTokenOfTheOneBefore() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        _ = unauthorized(&machine, 2, generation: 1)
        _ = machine.refreshFailed(2)
        let old = unauthorized(&machine, 3, generation: 0)
        let fault = unauthorized(&machine, 4, generation: 1)
        let fresh = unauthorized(&machine, 5, generation: 2)
        #expect([old, fault, fresh] == [.replay(generation: 2), .giveUp, .startRefresh(3)])
    }

    @Test func refreshNeverWaitsForItself() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        let sent = machine.starting(2, isRefresh: true)
        #expect(sent == .send(generation: 0))
        let refused = unauthorized(&machine, 2, isRefresh: true)
        #expect(refused == .giveUp)
        #expect(machine.waitingCount == 1)
        let released = machine.refreshFailed(1)
        #expect(same(released, [1: .giveUp]))
    }

    @Test func refreshThatNobodyAskedForStartsNoOther() {
        var machine = RefreshMachine()
        let refused = unauthorized(&machine, 1, isRefresh: true)
        #expect(refused == .giveUp)
        #expect(!machine.isRefreshing)
    }

    @Test func replayedRunIsNotRefreshedForAgain() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        let again = unauthorized(&machine, 1, generation: 1, wasReplayed: true)
        #expect(again == .giveUp)
        #expect(!machine.isRefreshing)
        _ = unauthorized(&machine, 2, generation: 1)
        let during = unauthorized(&machine, 1, generation: 1, wasReplayed: true)
        #expect(during == .giveUp)
    }

    @Test func cancelledRunIsForgottenAndTheRefreshGoesOn() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = unauthorized(&machine, 2)
        let first = machine.cancelled(1)
        let second = machine.cancelled(1)
        let unknown = machine.cancelled(9)
        #expect([first, second, unknown] == [true, false, false])
        #expect(machine.isRefreshing)
        let late = unauthorized(&machine, 3)
        #expect(late == .wait)
        let released = machine.refreshed(1)
        #expect(same(released, [2: .replay(generation: 1), 3: .replay(generation: 1)]))
    }

    @Test func refreshGoesOnWhenAllThatWaitedAreCancelled() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.cancelled(1)
        #expect(machine.isRefreshing)
        let released = machine.refreshed(1)
        #expect(released.isEmpty)
        #expect(machine.generation == 1)
    }

    @Test func endOfARefreshIsToldOnce() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        _ = unauthorized(&machine, 2, generation: 1)
        let released = [machine.refreshed(1), machine.refreshFailed(1), machine.refreshFailed(3)]
        #expect(released.map { $0.count } == [0, 0, 0])
        #expect(machine.isRefreshing)
        #expect(machine.waitingCount == 1)
        #expect(machine.generation == 1)
    }

    @Test func shutdownKeepsNobodyWaiting() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.starting(2, isRefresh: false)
        var released = machine.shutDown()
        #expect(same(released, [1: .giveUp, 2: .giveUp]))
        released = machine.refreshed(1)
        #expect(released.isEmpty)
        let started = machine.starting(3, isRefresh: false)
        let refused = unauthorized(&machine, 3)
        #expect([started, refused] == [.giveUp, .giveUp])
    }
}

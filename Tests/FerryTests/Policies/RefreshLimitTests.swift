import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Refreshes that do not help.
@Suite struct RefreshLimitTests {
    private static let start = ContinuousClock.now

    /// A refresh whose token is also refused by the same resource.
    private func refreshInVain(
        _ machine: inout RefreshMachine, at seconds: Int = 0, by resource: Int = 0
    ) -> RefreshMachine.Action {
        let generation = machine.generation
        let now = Self.start + .seconds(seconds)
        let action = machine.unauthorized(
            1, generation: generation, wasReplayed: false, isRefresh: false, by: resource, now: now)
        guard case .startRefresh(let number) = action else { return action }
        _ = machine.refreshed(number)
        let again = machine.unauthorized(
            1, generation: generation + 1, wasReplayed: true, isRefresh: false, by: resource, now: now)
        #expect(again == .giveUp)
        return action
    }

    @Test func refreshesThatDoNotHelpAreLimitedInTheirWindow() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 2, window: .seconds(60)))
        let actions = [0, 30, 31, 59, 60, 61, 89, 90].map { refreshInVain(&machine, at: $0) }
        let (gaveUp, started) = (RefreshMachine.Action.giveUp, (1...4).map { RefreshMachine.Action.startRefresh($0) })
        #expect(actions == [started[0], started[1], gaveUp, gaveUp, started[2], gaveUp, gaveUp, started[3]])
        var none = RefreshMachine(RefreshLimit(maxRefreshes: 0))
        let refused = refreshInVain(&none)
        #expect(refused == .giveUp)
    }

    @Test func refreshesThatFailAreLimitedToo() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 1))
        _ = unauthorized(&machine, 1)
        _ = machine.refreshFailed(1)
        let next = unauthorized(&machine, 2, generation: 1)
        #expect(next == .giveUp)
    }

    @Test func aRefreshThatHelpedItsStarterDoesNotCount() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 1))
        for number in UInt64(1)...20 {
            let action = unauthorized(&machine, number, generation: number - 1)
            #expect(action == .startRefresh(number))
            _ = machine.refreshed(number)
            machine.accepted(generation: number, after: number)
        }
        let last = unauthorized(&machine, 21, generation: 20)
        #expect(last == .startRefresh(21))
        _ = machine.refreshed(21)
        // Acceptance elsewhere does not show it, nor that it came from another refresh.
        machine.accepted(generation: 21, after: nil)
        machine.accepted(generation: 21, after: 20)
        let next = unauthorized(&machine, 22, generation: 21)
        #expect(next == .giveUp)
    }

    @Test func aResourceThatRefusesAnAcceptedTokenDoesNotReplaceIt() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: .max))
        let first = refreshInVain(&machine, at: 0, by: 7)
        machine.accepted(generation: 1, after: nil, now: Self.start + .seconds(1))
        let again = refreshInVain(&machine, at: 10, by: 7)
        #expect([first, again] == [.startRefresh(1), .giveUp])
        // For another resource it may have expired.
        let other = refreshInVain(&machine, at: 10, by: 8)
        #expect(other == .startRefresh(2))
        // And nobody has accepted the next one.
        let late = refreshInVain(&machine, at: 10, by: 7)
        #expect(late == .startRefresh(3))
        machine.accepted(generation: 3, after: nil, now: Self.start + .seconds(11))
        let later = refreshInVain(&machine, at: 21, by: 7)
        #expect(later == .startRefresh(4))
    }

    @Test func aRunThatCannotBeSentAgainStartsTheRefreshAndDoesNotWait() {
        var machine = RefreshMachine()
        var actions = [UInt64(1), 2].map {
            machine.unauthorized($0, generation: 0, wasReplayed: false, isRefresh: false, waits: false)
        }
        #expect(actions == [.startRefresh(1), .giveUp] && machine.waitingCount == 0)
        actions = [machine.starting(3, isRefresh: false)]
        let released = machine.refreshed(1)
        #expect(actions == [.wait] && same(released, [3: .send(generation: 1)]))
    }

    @Test func theFirstTokenIsFetchedWithoutALimit() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 0))
        for number in UInt64(1)...5 {
            let actions = [machine.missing(1), machine.missing(2)]
            #expect(actions == [.startRefresh(number), .wait])
            let released = machine.refreshFailed(number)
            #expect(same(released, [1: .giveUp, 2: .giveUp]))
        }
    }

    /// Any order of events: no run is kept twice or forgotten, and there is one refresh at a time.
    @Test(arguments: 0..<200)
    func everyOrderOfEventsEndsWithAnActionForEveryRun(_ seed: UInt64) {
        var generator = SplitMix(state: seed)
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: .max))
        var kept: Set<UInt64> = []
        var underWay: UInt64?
        var next: UInt64 = 0
        func take(_ released: [(run: UInt64, action: RefreshMachine.Action)]) {
            for (run, action) in released {
                let wasKept = kept.remove(run) != nil
                #expect(wasKept)
                #expect(action != .wait)
            }
            #expect(kept.isEmpty)
            underWay = nil
        }
        for _ in 0..<200 {
            switch generator.next() % 6 {
            case 0:
                next += 1
                if machine.starting(next, isRefresh: false) == .wait {
                    #expect(underWay != nil)
                    kept.insert(next)
                }
            case 1, 2:
                next += 1
                let old = machine.generation == 0 ? 0 : machine.generation - generator.next() % 2
                let (isOld, wasRefreshing) = (old < machine.generation, machine.isRefreshing)
                switch machine.unauthorized(next, generation: old, wasReplayed: false, isRefresh: false) {
                case .startRefresh(let number):
                    #expect(underWay == nil)
                    underWay = number
                    kept.insert(next)
                case .wait:
                    #expect(underWay != nil)
                    kept.insert(next)
                case .replay(let generation): #expect(generation > old)
                case .giveUp: #expect(isOld && !wasRefreshing, "only after a refresh that failed")
                case .send: Issue.record("that is no answer to this")
                }
            case 3:
                let run = generator.next() % (next + 1)
                let wasKept = kept.remove(run) != nil
                let isForgotten = machine.cancelled(run)
                #expect(isForgotten == wasKept)
            case 4: if let number = underWay { take(machine.refreshed(number)) }
            default: if let number = underWay { take(machine.refreshFailed(number)) }
            }
            #expect(machine.waitingCount == kept.count)
            #expect(machine.isRefreshing == (underWay != nil))
        }
        take(machine.shutDown())
    }

    @Test func runsContinueWithAValidTokenWhileItIsReplaced() {
        var machine = RefreshMachine()
        let actions = [
            machine.expiring(1, isOver: false), machine.starting(2, isRefresh: false),
            machine.expiring(2, isOver: false), machine.expiring(3, isOver: true), unauthorized(&machine, 4),
        ]
        #expect(actions == [.startRefresh(1), .send(generation: 0), .send(generation: 0), .wait, .wait])
        let released = machine.refreshed(1)
        #expect(same(released, [3: .send(generation: 1), 4: .replay(generation: 1)]))
    }

    @Test func afterAFailedEarlyRefreshTheNextRefusalStartsAnother() {
        var machine = RefreshMachine()
        _ = machine.expiring(1, isOver: false)
        #expect(machine.refreshFailed(1).isEmpty && machine.generation == 0)
        let action = unauthorized(&machine, 2, generation: 0)
        #expect(action == .startRefresh(2))
    }

    @Test func failedEarlyRefreshesDoNotCountAndKeepTheirDistance() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 1, window: .seconds(60)))
        let now = ContinuousClock.now
        let first = machine.expiring(1, isOver: false, now: now)
        _ = machine.refreshFailed(1)
        let soon = machine.expiring(2, isOver: false, now: now + .seconds(9))
        let over = machine.expiring(3, isOver: true, now: now + .seconds(9))
        _ = machine.refreshFailed(2)
        let later = machine.expiring(4, isOver: false, now: now + .seconds(10))
        #expect(
            [first, soon, over, later] == [.startRefresh(1), .send(generation: 0), .startRefresh(2), .startRefresh(3)])
    }

    @Test func refreshesOfExpiringTokensAreWithinTheLimit() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 2, window: .seconds(60)))
        let now = ContinuousClock.now
        for number in UInt64(1)...2 {
            let action = machine.expiring(number, isOver: true, now: now)
            #expect(action == .startRefresh(number))
            _ = machine.refreshFailed(number)
        }
        let third = machine.expiring(3, isOver: true, now: now)
        #expect(third == .send(generation: 2))
        let later = machine.expiring(4, isOver: true, now: now + .seconds(60))
        #expect(later == .startRefresh(3))
        _ = machine.refreshed(3)
        machine.lasts(3)
        let next = (5...6).map { machine.expiring($0, isOver: false, now: now + .seconds(61)) }
        #expect(next == [.startRefresh(4), .send(generation: 3)])
    }

    @Test func aTokenThatLastsMayStillBeRefused() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 2, window: .seconds(60)))
        for number in UInt64(1)...2 {
            let action = unauthorized(&machine, number, generation: number - 1)
            #expect(action == .startRefresh(number))
            _ = machine.refreshed(number)
            machine.lasts(number)
        }
        let third = unauthorized(&machine, 3, generation: 2)
        #expect(third == .giveUp)
    }

    @Test func anExpiredTokenIsRefreshedEvenIfRefusedOnesAreNot() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 0))
        let refused = unauthorized(&machine, 1)
        let expired = machine.expiring(2, isOver: true)
        #expect([refused, expired] == [.giveUp, .startRefresh(1)])
    }

    @Test func eachKindOfRefreshHasItsOwnLimit() {
        var machine = RefreshMachine(RefreshLimit(maxRefreshes: 1, window: .seconds(60)))
        let now = ContinuousClock.now
        let refused = machine.unauthorized(1, generation: 0, wasReplayed: false, isRefresh: false, now: now)
        _ = machine.refreshed(1)
        let expired = machine.expiring(2, isOver: true, now: now)
        #expect([refused, expired] == [.startRefresh(1), .startRefresh(2)])
    }

    @Test func anOutdated401DoesNotWaitForAnEarlyRefresh() {
        var machine = RefreshMachine()
        _ = unauthorized(&machine, 1)
        _ = machine.refreshed(1)
        _ = machine.expiring(2, isOver: false)
        let old = unauthorized(&machine, 3, generation: 0)
        let fresh = unauthorized(&machine, 4, generation: 1)
        #expect([old, fresh] == [.replay(generation: 1), .wait])
    }
}

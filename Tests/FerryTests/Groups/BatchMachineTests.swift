import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct BatchMachineTests {
    /// A machine with this many started members.
    private func machine(
        _ count: Int, atMost limit: Int = .max, _ mode: BatchMachine.Mode = .failFast, begun: Int = 0
    ) -> BatchMachine {
        var machine = BatchMachine(count: count, atMost: limit, mode: mode)
        for index in 0..<begun { #expect(machine.next() == index) }
        return machine
    }

    @Test func anEmptyBatchIsCompleteAtOnce() {
        var machine = machine(0)
        #expect(machine.end == .complete)
        #expect(machine.limit == 0)
        #expect(machine.next() == nil)
        #expect(machine.interrupt() == .stop)
        #expect(machine.end == .complete)
    }

    @Test func noMoreAtOnceThanMembersAndAtLeastOne() {
        #expect(machine(5).limit == 5)
        #expect(machine(5, atMost: 3).limit == 3)
        #expect(machine(5, atMost: 0).limit == 1)
        #expect(machine(5, atMost: -7).limit == 1)
    }

    @Test func membersAreTakenInOrderAndOnce() {
        var machine = machine(3)
        #expect([machine.next(), machine.next(), machine.next(), machine.next()] == [0, 1, 2, nil])
        #expect(machine.running == 3)
        #expect(machine.end == nil)
        for index in [2, 0, 1] { #expect(machine.ended(index, well: true) == .goOn) }
        #expect(machine.end == .complete)
    }

    @Test func theNextBeginsWhenOneHasEnded() {
        var machine = machine(4, atMost: 2, begun: 2)
        #expect(machine.next() == nil)
        #expect(machine.ended(1, well: true) == .goOn)
        #expect(machine.next() == 2)
        #expect(machine.next() == nil)
        #expect(machine.running == 2)
    }

    @Test func theFirstFailureStopsAFailFastBatch() {
        var machine = machine(10, begun: 6)
        #expect(machine.ended(4, well: false) == .stop)
        #expect(machine.next() == nil, "nothing more begins")
        #expect(machine.end == nil, "what runs has to end first")
        #expect(machine.ended(2, well: false) == .stop)
        for index in [0, 1, 3, 5] { #expect(machine.ended(index, well: true) == .stop) }
        #expect(machine.end == .failed(4))
    }

    @Test func theLastToEndCountsLikeAnyOther() {
        var failed = machine(2, begun: 2)
        #expect(failed.ended(0, well: true) == .goOn)
        #expect(failed.ended(1, well: false) == .stop)
        #expect(failed.end == .failed(1))
        var cancelled = machine(1, mode: .collectAll, begun: 1)
        #expect(cancelled.ended(0, well: false, interrupted: true) == .stop)
        #expect(cancelled.end == .interrupted)
    }

    @Test func failuresAreResultsWhenAllAreCollected() {
        var machine = machine(3, mode: .collectAll, begun: 3)
        for index in 0..<3 { #expect(machine.ended(index, well: false) == .goOn) }
        #expect(machine.end == .complete)
    }

    @Test(arguments: [BatchMachine.Mode.failFast, .collectAll])
    func aCancelCountsInEveryState(_ mode: BatchMachine.Mode) {
        for begun in 0...3 {
            for ended in 0...begun {
                var machine = machine(4, mode: mode, begun: begun)
                for index in 0..<ended { _ = machine.ended(index, well: true) }
                #expect(machine.interrupt() == .stop)
                #expect(machine.next() == nil)
                for index in ended..<begun { #expect(machine.ended(index, well: false, interrupted: true) == .stop) }
                #expect(machine.end == .interrupted, "\(begun) begun, \(ended) ended")
            }
        }
    }

    @Test func aCancelAfterTheEndIsNothing() {
        var machine = machine(1, begun: 1)
        _ = machine.ended(0, well: true)
        _ = machine.interrupt()
        #expect(machine.end == .complete)
    }

    @Test func whatCameFirstIsTheReason() {
        var failed = machine(3, begun: 3)
        _ = failed.ended(1, well: false)
        _ = failed.interrupt()
        for index in [0, 2] { _ = failed.ended(index, well: false, interrupted: true) }
        #expect(failed.end == .failed(1))
        var cancelled = machine(3, begun: 3)
        _ = cancelled.ended(0, well: false, interrupted: true)
        for index in [1, 2] { _ = cancelled.ended(index, well: false) }
        #expect(cancelled.end == .interrupted)
    }

    private func machine(_ count: Int, mode: BatchMachine.Mode, begun: Int) -> BatchMachine {
        machine(count, atMost: .max, mode, begun: begun)
    }
}

import Ferry
import FerryMeasurement
import FoundationEssentials
import Testing

@testable import FerryCommand

/// What the coordinator decides, without a network and without a clock.
@Suite struct FleetMachineTests {
    private static let second: UInt64 = 1_000_000_000

    private func machine(_ workers: Int = 2, loadTime: UInt64? = nil) -> FleetMachine {
        FleetMachine(workers: workers, joiningWithin: .seconds(60), loadTime: loadTime, at: 0)
    }

    private func beat(
        _ token: String, _ number: UInt64 = 0, _ phase: FleetBeat.Phase = .running, ok: Int = 0
    ) -> FleetMachine.Finding {
        var beat = FleetBeat(token: token, name: "host:\(token)", number: number, phase: phase)
        if ok > 0 { beat.figures = figures(ok: ok) }
        return .beat(beat)
    }

    private func figures(ok: Int) -> FleetFigures {
        var totals = BenchTotals()
        for _ in 0..<ok { totals.latencies.record(1000) }
        var figures = BenchFigures(totals, date: .now)
        figures.seconds = 1
        return FleetFigures(figures)
    }

    private func result(_ token: String, ok: Int, wasInterrupted: Bool = false) -> FleetResult {
        FleetResult(token: token, figures: figures(ok: ok), wasInterrupted: wasInterrupted)
    }

    private func started(_ workers: Int = 2, loadTime: UInt64? = nil) throws -> FleetMachine {
        var machine = machine(workers, loadTime: loadTime)
        let joined = (0..<workers).map { beat("\($0)", 0, .joined) }
        guard case .start = machine.looked(joined, at: 0) else { throw Unexpected() }
        return machine
    }

    private struct Unexpected: Error {}

    @Test func theLoadStartsWhenAllHaveJoined() {
        var machine = machine()
        #expect(machine.looked([.nothing, .nothing], at: 0).word == "wait")
        #expect(machine.looked([beat("a"), .nothing], at: 1).word == "wait" && machine.joined == 1)
        #expect(machine.looked([.nothing, beat("b")], at: 2).word == "wait" && machine.joined == 1)
        #expect(machine.looked([beat("c"), beat("b")], at: 3).word == "start" && machine.joined == 2)
        #expect(machine.token(0) == "c" && machine.token(1) == "b")
    }

    @Test func missingWorkersAreNotWaitedFor() {
        var machine = machine(3)
        let found = [beat("a"), .nothing, beat("c")]
        #expect(machine.looked(found, at: 60 * Self.second - 1).word == "wait")
        #expect(
            machine.looked(found, at: 60 * Self.second).word == "fail: 2 of 3 workers joined within 60 s")
    }

    @Test func anInvalidMessageEndsTheWait() {
        var machine = machine()
        #expect(
            machine.looked([beat("a"), .damaged("its message is not valid")], at: 0).word
                == "fail: worker 2: its message is not valid")
    }

    @Test func theMachineEndsAfterTheLastResult() throws {
        var machine = try started()
        #expect(machine.looked([beat("0", 1), beat("1", 1)], at: 1).word == "wait")
        #expect(machine.looked([beat("0", 2, .done), beat("1", 2)], at: 2).word == "collect [0]")
        machine.received(.success(result("0", ok: 3)), from: 0)
        #expect(machine.looked([.nothing, beat("1", 3, .done)], at: 3).word == "collect [1]")
        machine.received(.success(result("1", ok: 4)), from: 1)
        #expect(machine.looked([.nothing, .nothing], at: 4).word == "end")
        #expect(machine.members.map(\.outcome) == [.finished, .finished])
        #expect(machine.members.map(\.requests) == [3, 4])
        #expect(BenchFigures(merging: machine.figures).totals.ok == 7)
    }

    @Test func aWorkerThatDiesIsReportedWithItsLastFigures() throws {
        var machine = try started()
        #expect(machine.looked([beat("0", 1, ok: 5), beat("1", 1)], at: 1).word == "wait")
        #expect(machine.looked([.nothing, beat("1", 2, .done)], at: 2).word == "collect [1]")
        machine.received(.success(result("1", ok: 4)), from: 1)
        #expect(machine.looked([.nothing, .nothing], at: 3).word == "end")
        #expect(machine.members.map(\.outcome) == [.lost, .finished])
        let complaint = machine.members[0].complaint(number: 1)
        #expect(
            complaint
                == "worker 1 (host:0) was lost: it stopped sending messages; the figures include 5 of its requests")
        #expect(BenchFigures(merging: machine.figures).totals.ok == 9)
    }

    /// Also if Redis does not let its messages expire.
    @Test func aWorkerThatSendsNothingNewIsLost() throws {
        var machine = try started(1)
        #expect(machine.looked([beat("0", 1)], at: Self.second).word == "wait")
        #expect(machine.looked([beat("0", 2)], at: 5 * Self.second).word == "wait")
        #expect(machine.looked([beat("0", 2)], at: 15 * Self.second - 1).word == "wait")
        #expect(machine.looked([beat("0", 2)], at: 15 * Self.second).word == "end")
        #expect(machine.members.map(\.outcome) == [.lost])
    }

    @Test func aReplacedWorkerAndAnInvalidResultAreLost() throws {
        var machine = try started(3)
        let found = [beat("x", 1), .damaged("its message is not valid"), beat("2", 1, .done)]
        #expect(machine.looked(found, at: 1).word == "collect [2]")
        machine.received(.failure(FleetError("its result is not valid")), from: 2)
        #expect(machine.looked(found, at: 2).word == "end")
        #expect(
            machine.members.map(\.reason) == [
                "another process has taken its place", "its message is not valid", "its result is not valid",
            ])
    }

    /// The coordinator's terminal shows what has come since its last look.
    @Test func aWorkerThatTakesBackWhatItHasSaidIsLost() throws {
        var machine = try started(3)
        let first = [beat("0", 1, ok: 5), beat("1", 1, ok: 5), beat("2", 1, ok: 5)]
        #expect(machine.looked(first, at: 1).word == "wait")
        let second = [beat("0", 2, ok: 4), beat("1", 2, .done, ok: 5), beat("2", 2, .done, ok: 6)]
        #expect(machine.looked(second, at: 2).word == "collect [1, 2]")
        machine.received(.success(result("1", ok: 4)), from: 1)
        machine.received(.success(result("2", ok: 6)), from: 2)
        #expect(machine.looked(second, at: 3).word == "end")
        #expect(machine.members.map(\.outcome) == [.lost, .lost, .finished])
        #expect(machine.members.map(\.reason) == ["its message is not valid", "its result is not valid", nil])
        #expect(BenchFigures(merging: machine.figures).totals.ok == 16)
    }

    @Test func afterACancelAllStopAndSlowWorkersAreLost() throws {
        var machine = try started()
        #expect(machine.cancelled(at: 0).word == "stop" && machine.cancelled(at: 1).word == "wait")
        #expect(machine.looked([beat("0", 1, .done), beat("1", 1)], at: 1).word == "collect [0]")
        machine.received(.success(result("0", ok: 1, wasInterrupted: true)), from: 0)
        for second in 1..<10 as Range<UInt64> {
            #expect(machine.looked([.nothing, beat("1", second)], at: second * Self.second).word == "wait")
        }
        #expect(machine.looked([.nothing, beat("1", 10)], at: FleetMachine.stopTime).word == "end")
        #expect(machine.members.map(\.outcome) == [.interrupted, .lost])
        var joining = self.machine()
        #expect(joining.cancelled(at: 0).word == "fail: interrupted")
    }

    @Test func aLoadThatTakesTooLongIsStopped() throws {
        var machine = try started(1, loadTime: 20 * Self.second)
        #expect(machine.looked([beat("0", 1)], at: 19 * Self.second).word == "wait")
        #expect(machine.looked([beat("0", 2)], at: 20 * Self.second).word == "stop")
    }
}

extension FleetMachine.Action {
    fileprivate var word: String {
        switch self {
        case .wait: "wait"
        case .start: "start"
        case .collect(let indices): "collect \(indices)"
        case .stop: "stop"
        case .end: "end"
        case .fail(let text): "fail: \(text)"
        }
    }
}

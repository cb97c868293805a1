import Testing

@testable import FerryRedis

@Suite struct RedisCircuitTests {
    private let second: UInt64 = 1_000_000_000
    private var circuit = RedisCircuit(maxFailures: 3, pause: .seconds(1), longestPause: .seconds(3))

    private mutating func open(at now: UInt64) { for _ in 0..<3 { circuit.failed(at: now) } }

    private mutating func expect(_ isAllowed: Bool, at now: UInt64, _ location: SourceLocation = #_sourceLocation) {
        let allows = circuit.allows(at: now)
        #expect(allows == isAllowed, sourceLocation: location)
    }

    @Test mutating func failuresInARowOpenTheCircuit() {
        circuit.failed(at: 0)
        circuit.failed(at: 0)
        expect(true, at: 0)
        #expect(!circuit.isOpen)
        circuit.failed(at: 0)
        expect(false, at: 0)
        #expect(circuit.isOpen)
    }

    @Test mutating func aSuccessBetweenFailuresKeepsTheCircuitClosed() {
        for _ in 0..<10 {
            circuit.failed(at: 0)
            circuit.failed(at: 0)
            circuit.succeeded()
        }
        expect(true, at: 0)
    }

    @Test mutating func afterThePauseOneAttemptIsAllowed() {
        open(at: 0)
        expect(false, at: second - 1)
        expect(true, at: second)
        expect(false, at: second)
        circuit.succeeded()
        expect(true, at: second)
        #expect(!circuit.isOpen)
    }

    @Test mutating func thePauseGrowsToItsMaximumAndShrinksAfterASuccess() {
        open(at: 0)
        // A second, two, and three at most.
        for (now, until) in [(0, 1), (1, 3), (3, 6), (6, 9)] as [(UInt64, UInt64)] {
            if now > 0 { circuit.failed(at: now * second) }
            expect(false, at: until * second - 1)
            expect(true, at: until * second)
        }
        circuit.succeeded()
        open(at: 10 * second)
        expect(true, at: 11 * second)
    }

    @Test mutating func aLateSuccessDoesNotCloseTheCircuit() {
        open(at: 0)
        circuit.succeeded()
        expect(false, at: 0)
    }

    @Test mutating func theEndOfThePauseIsUnknownDuringATest() {
        #expect(circuit.pauseEnd == 0)
        open(at: 0)
        #expect(circuit.pauseEnd == second)
        expect(true, at: second)
        #expect(circuit.pauseEnd == nil)
        circuit.failed(at: second)
        #expect(circuit.pauseEnd == 3 * second)
    }

    @Test mutating func extremeTimesDoNotTrap() {
        circuit = RedisCircuit(maxFailures: 0, pause: .seconds(Int64.max), longestPause: .seconds(Int64.min))
        circuit.failed(at: .max)
        _ = circuit.allows(at: .max)
        circuit.failed(at: .max)
        #expect(Duration.seconds(Int64.max).milliseconds > 0)
        #expect(Duration.seconds(-5).nanoseconds == 0 && Duration.seconds(Int64.min).nanoseconds == 0)
    }
}

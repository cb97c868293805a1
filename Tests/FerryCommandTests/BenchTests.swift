import FerryMeasurement
import Testing

@testable import FerryCommand

@Suite struct BenchPlanTests {
    private func plan(_ line: String...) throws -> BenchPlan {
        try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
    }

    @Test func tenSecondsAreTheDefault() throws {
        let plan = try plan("http://h/")
        #expect(plan.duration == .seconds(10))
        #expect(plan.requests == nil)
        #expect(plan.concurrency == 64)
    }

    @Test func aCountTakesThePlaceOfTheTime() throws {
        let plan = try plan("-n", "5", "-c", "2", "--loops", "3")
        #expect(plan.requests == 5)
        #expect(plan.duration == nil)
        #expect(plan.url == nil)
        #expect(plan.loops == 3)
    }

    @Test(arguments: [
        ["-n", "0"], ["-z", "0"], ["-n", "1", "-z", "1"], ["-c", "0"], ["--loops", "0"], ["a", "b"],
    ])
    func nonsenseIsAUsageError(line: [String]) {
        #expect(throws: UsageError.self) { try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions)) }
    }

    @Test func ticketsEndWithTheCount() throws {
        let tickets = try BenchTickets(plan("-n", "2"), start: monotonicNanoseconds())
        #expect(tickets.take())
        #expect(tickets.take())
        #expect(!tickets.take())
        #expect(!tickets.take())
    }

    @Test func ticketsEndWithTheTime() throws {
        let plan = try plan("-z", "1")
        #expect(BenchTickets(plan, start: monotonicNanoseconds()).take())
        #expect(!BenchTickets(plan, start: monotonicNanoseconds() - 1_000_000_001).take())
    }
}

@Suite struct BodySampleTests {
    private func sample(_ bytes: [UInt8]) -> BodySample {
        bytes.withUnsafeBytes(BodySample.init)
    }

    @Test func equalBodiesAreAlike() {
        #expect(sample([]) == sample([]))
        #expect(sample(Array("hello world\n".utf8)) == sample(Array("hello world\n".utf8)))
    }

    @Test func lengthFirstWordAndLastByteAreSeen() {
        let body = [UInt8](repeating: 7, count: 1000)
        var first = body
        first[0] = 8
        var last = body
        last[999] = 8
        #expect(sample(body) != sample(body.dropLast()))
        #expect(sample(body) != sample(first))
        #expect(sample(body) != sample(last))
        #expect(sample([1, 2, 3]) != sample([1, 9, 3]))
    }
}

import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct DurationUnitsTests {
    @Test func microsecondsAreCut() {
        #expect(Duration.nanoseconds(1999).microseconds == 1 && Duration.nanoseconds(-1999).microseconds == -1)
        #expect(Duration.seconds(2.5).microseconds == 2_500_000)
    }

    @Test func whatCannotBeCountedIsTheMostThatCan() {
        #expect(Duration.seconds(Int64.max).microseconds == .max && Duration.seconds(Int64.min).microseconds == .min)
        // The whole seconds fit, and the rest on top of them does not.
        let edge = Duration.seconds(9_223_372_036_854) + .milliseconds(900)
        #expect(edge.microseconds == .max && (Duration.zero - edge).microseconds == .min)
    }

    private struct Nothing: RequestAdapter {
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {}
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(10_000_000_000)])
    func theLongestDeadlineIsNoTrap(deadline: Duration) async throws {
        var configuration = NetworkConfiguration.test
        configuration.adapters = [Nothing()]
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        var request = HTTPRequest(.get, "/x")
        request.deadline = deadline
        try await agent.send(request)
        _ = try await agent.send(BatchRequest([request]).deadline(deadline))
        await agent.shutdown()
    }
}

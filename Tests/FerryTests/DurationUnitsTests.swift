import Testing

@testable import Ferry

@Suite struct DurationUnitsTests {
    @Test func microsecondsAreCut() {
        #expect(Duration.nanoseconds(1999).microseconds == 1 && Duration.nanoseconds(-1999).microseconds == -1)
        #expect(Duration.seconds(2.5).microseconds == 2_500_000)
    }

    @Test func whatCannotBeCountedIsTheMostThatCan() {
        #expect(Duration.seconds(Int64.max).microseconds == .max && Duration.seconds(Int64.min).microseconds == .min)
        // The whole seconds can be, and the rest on top of them cannot.
        let edge = Duration.seconds(9_223_372_036_854) + .milliseconds(900)
        #expect(edge.microseconds == .max && (Duration.zero - edge).microseconds == .min)
    }
}

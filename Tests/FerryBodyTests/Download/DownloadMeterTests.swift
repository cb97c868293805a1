import Dispatch
import Testing

@testable import Ferry

/// What a download says about its progress.
@Suite struct DownloadMeterTests {
    private let meter = DownloadMeter(on: DispatchQueue(label: "meter"))

    @Test(arguments: [0, 1e-300, 1e-9, 1, .infinity])
    func anEstimateIsNeverLongerThanADuration(rate: Double) {
        let progress = DownloadProgress(
            received: 1, total: 999_999_999_999_999_999, rate: rate, resumedFrom: 0, isResumable: false)
        #expect(progress.remaining.map { $0 >= .zero } ?? (rate == 0))
    }

    @Test func theRateStaysAsItWasAtTheEnd() {
        let second: UInt64 = 1_000_000_000
        let start = second
        meter.begin(at: 0, resumedFrom: 0, total: 100, isResumable: false, now: start)
        meter.add(50, now: start + second)
        meter.end(now: start + 2 * second)
        #expect(meter.progress.rate == 25)
    }

    @Test func aSequenceThatNobodyReadsIsForgotten() async {
        for _ in 0..<100 {
            let task = Task { [updates = meter.updates] in for await _ in updates {} }
            task.cancel()
            await task.value
        }
        #expect(meter.listenerCount == 0)
        meter.end()
        for await progress in meter.updates { #expect(progress.received == 0) }
    }

    @Test func aNameThatBeginsWithACombiningMarkIsAName() throws {
        let place = try DownloadPlan.Place(.file("/srv/in/\u{301}x"))
        #expect(place.directory == "/srv/in" && place.name.map { Array($0.utf8) } == Array("\u{301}x".utf8))
    }
}

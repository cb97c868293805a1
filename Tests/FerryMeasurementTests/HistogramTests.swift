import FerryMeasurement
import FoundationEssentials
import Testing

@Suite struct HistogramTests {
    @Test func aStateContainsThoseBeforeIt() {
        var histogram = Histogram()
        var states = [histogram]
        for value in [500, 300, 9000, 500] as [UInt64] {
            histogram.record(value)
            states.append(histogram)
        }
        for (index, state) in states.enumerated() {
            for (other, earlier) in states.enumerated() {
                #expect(state.contains(earlier) == (other <= index))
            }
        }
    }

    @Test func emptyHasNoPercentiles() {
        let histogram = Histogram()
        #expect(histogram.percentile(50) == 0)
        #expect(histogram.mean == 0)
        #expect(histogram.count == 0)
    }

    @Test func smallValuesAreExact() {
        var histogram = Histogram()
        for value in UInt64(1)...200 { histogram.record(value) }
        #expect(histogram.percentile(0) == 1)
        #expect(histogram.percentile(50) == 100)
        #expect(histogram.percentile(99) == 198)
        #expect(histogram.percentile(100) == 200)
        #expect(histogram.mean == 100.5)
    }

    @Test(arguments: [UInt64(255), 256, 257, 1000, 65_535, 1_000_000, 123_456_789, 1 << 40, .max])
    func everyMagnitudeIsWithinOnePercent(value: UInt64) {
        var histogram = Histogram()
        histogram.record(value)
        histogram.record(.max)
        let found = histogram.percentile(50)
        #expect(found >= value)
        #expect(Double(found) <= Double(value) * 1.008)
    }

    @Test func percentileNeverLeavesWhatWasRecorded() {
        var histogram = Histogram()
        histogram.record(1_000_003)
        for percent in [0, 50, 99.9, 100] { #expect(histogram.percentile(percent) == 1_000_003) }
    }

    @Test func sumOfTwoIsTheHistogramOfAll() {
        var odd = Histogram()
        var even = Histogram()
        var all = Histogram()
        for value in UInt64(0)..<5000 {
            if value % 2 == 0 { even.record(value * 37) } else { odd.record(value * 37) }
            all.record(value * 37)
        }
        odd.add(even)
        odd.add(Histogram())
        #expect(odd.percentile(99) == all.percentile(99))
        #expect(odd.minimum == 0)
        #expect(odd.maximum == all.maximum)
        #expect(odd.count == all.count)
    }

    @Test func whatCameSinceIsTheRest() {
        var earlier = Histogram()
        for value in [500, 7_000, 90] as [UInt64] { earlier.record(value) }
        var later = earlier
        var rest = Histogram()
        for value in [3, 100_000, 7_001, 200] as [UInt64] {
            later.record(value)
            rest.record(value)
        }
        let since = later.since(earlier)
        #expect(since.count == 4 && since.mean == rest.mean)
        for percent in [1, 25, 50, 75.0] { #expect(since.percentile(percent) == rest.percentile(percent)) }
        #expect(since.minimum == 3 && since.maximum == 100_000)
        #expect(later.since(Histogram()) == later)
        #expect(later.since(later) == Histogram())
    }

    @Test func equalContentsAreEqualInWhateverOrderTheyCame() {
        var up = Histogram()
        var down = Histogram()
        for value in 1...300 as ClosedRange<UInt64> { up.record(value * value) }
        for value in (1...300 as ClosedRange<UInt64>).reversed() { down.record(value * value) }
        #expect(up == down)
        var joined = Histogram()
        joined.add(up)
        #expect(joined == up)
    }

    @Test(arguments: [1, 2, 8, 128])
    func barsHoldEverythingOnce(perDoubling: Int) {
        var histogram = Histogram()
        for value in 1...2000 as ClosedRange<UInt64> { histogram.record(value * 997) }
        let bars = histogram.bars(perDoubling: perDoubling)
        #expect(bars.map(\.count).reduce(0, +) == 2000)
        #expect(zip(bars, bars.dropFirst()).allSatisfy { $0.upper + 1 == $1.lower })
        #expect(bars.first.map { $0.lower <= 997 && $0.count > 0 } == true)
        #expect(bars.last.map { $0.upper >= 2000 * 997 && $0.count > 0 } == true)
        #expect(Histogram().bars(perDoubling: perDoubling).isEmpty)
    }
}

/// Histograms of another process.
@Suite struct HistogramCodingTests {
    private func coded(_ histogram: Histogram) throws -> Histogram {
        try JSONDecoder().decode(Histogram.self, from: JSONEncoder().encode(histogram))
    }

    @Test func nothingIsLostInTheConversion() throws {
        #expect(try coded(Histogram()) == Histogram())
        var histogram = Histogram()
        for value in [0, 1, 255, 256, 65_537, 1_000_003, 1 << 40, .max] as [UInt64] { histogram.record(value) }
        #expect(try coded(histogram) == histogram)
        let later = histogram
        histogram.record(77)
        #expect(try coded(histogram.since(later)) == histogram.since(later))
    }

    /// The percentile of the values themselves, sorted, beside that of three histograms that were sent and added up.
    @Test(arguments: [50, 90, 99, 99.9]) func theMergedPercentileEqualsThatOfTheUnion(percent: Double) throws {
        var values: [UInt64] = []
        var merged = Histogram()
        var random: UInt64 = 88_172_645_463_325_252
        for part in 0..<3 as Range<UInt64> {
            var own = Histogram()
            for _ in 0..<20_000 {
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                // From 50 µs on, with a tail that is another one in each part.
                let value = 50_000 + random % 400_000 + (random % 50 == 0 ? (part + 1) * (random % 30_000_000) : 0)
                own.record(value)
                values.append(value)
            }
            merged.add(try coded(own))
        }
        values.sort()
        let exact = Double(values[Int((Double(values.count) * percent / 100).rounded(.up)) - 1])
        #expect(abs(Double(merged.percentile(percent)) - exact) <= exact * 0.008)
        #expect(merged.count == UInt64(values.count) && merged.maximum == values.last)
    }

    @Test(arguments: [
        #"{"first":-1,"counts":[1],"minimum":0,"maximum":0,"sum":0}"#,
        #"{"first":0,"counts":[1,2],"minimum":0,"maximum":9,"sum":0}"#,
        #"{"first":5,"counts":[1],"minimum":6,"maximum":6,"sum":6}"#,
        #"{"first":5,"counts":[18446744073709551615,1],"minimum":5,"maximum":6,"sum":6}"#,
        #"{"first":5,"counts":[281474976710656,1],"minimum":5,"maximum":6,"sum":6}"#,
        #"{"first":7423,"counts":[0,1],"minimum":5,"maximum":6,"sum":6}"#,
        #"{"first":9223372036854775807,"counts":[1],"minimum":5,"maximum":6,"sum":6}"#,
        #"{"first":5,"counts":[1],"minimum":5,"maximum":5,"sum":-1}"#,
        #"{"first":5,"counts":[1],"minimum":5,"maximum":5,"sum":1e999}"#,
        #"{"first":5,"counts":[0],"minimum":5,"maximum":5,"sum":0}"#,
        #"{"first":5,"counts":[-1],"minimum":5,"maximum":5,"sum":0}"#,
        #"{"first":5,"minimum":5,"maximum":5,"sum":0}"#, "[]",
    ]) func impossibleHistogramsAreRefused(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Histogram.self, from: Data(text.utf8)) }
    }
}

@Suite struct CPUShareTests {
    @Test func workShowsAsAShare() {
        let start = CPUShare.Reading()
        let used = ProcessUsage.now
        // A share of what was used, however fast the machine is.
        while true {
            let so = ProcessUsage.now - used
            if so.user + so.system > 50_000 { break }
        }
        let share = CPUShare.Reading().since(start)
        #expect(share.process > 0 && share.process <= 1)
        #expect(share.busiestThread > 0 && share.busiestThread <= 1)
        #expect(share.machine >= 0 && share.machine <= 1)
    }
}

@Suite struct ProcessUsageTests {
    @Test func cpuTimeGrowsWithWork() {
        let start = ProcessUsage.now
        let until = monotonicNanoseconds() + 30_000_000
        while monotonicNanoseconds() < until {}
        let used = ProcessUsage.now - start
        #expect(used.user + used.system > 1000)
    }

    @Test func memoryIsReadFromTheKernel() {
        #expect(ProcessUsage.memory > 1000)
        #expect(ProcessUsage.peakMemory >= ProcessUsage.memory / 2)
    }
}

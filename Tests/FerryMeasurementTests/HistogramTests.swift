import FerryMeasurement
import Testing

@Suite struct HistogramTests {
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

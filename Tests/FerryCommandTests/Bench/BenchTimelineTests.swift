import FerryMeasurement
import Testing

@testable import FerryCommand

@Suite struct BenchTimelineTests {
    @Test func windowsHoldWhatEndedInThem() {
        var timeline = BenchTimeline()
        var all = Histogram()
        for value in [10, 20, 30] as [UInt64] { all.record(value) }
        timeline.observe(all, failed: 1, at: 0.05)
        #expect(timeline.windows.isEmpty)
        timeline.observe(all, failed: 1, at: 0.1)
        all.record(40)
        timeline.observe(all, failed: 1, at: 0.2)
        #expect(timeline.windows.map(\.latencies.count) == [3, 1])
        #expect(timeline.windows.map(\.failed) == [1, 0])
        #expect(timeline.windows[0].rate == 30, "failures are not responses")
        #expect(timeline.windows[1].latencies.maximum == 40 && timeline.windows[1].latencies.minimum == 40)
    }

    @Test func manyWindowsAreJoinedWithoutLoss() {
        var timeline = BenchTimeline()
        var all = Histogram()
        for step in 1...5000 {
            all.record(UInt64(step) * 1000)
            timeline.observe(all, failed: UInt64(step), at: Double(step) * 0.1)
        }
        timeline.finish(all, failed: 5000, at: 500.01)
        let windows = timeline.windows
        #expect(windows.count <= BenchTimeline.mostWindows && windows.count >= BenchTimeline.mostWindows / 2 - 1)
        #expect(windows.map(\.latencies.count).reduce(0, +) == 5000)
        #expect(windows.map(\.failed).reduce(0, +) == 5000)
        #expect(windows.first?.start == 0 && windows.last?.end == 500.01)
        #expect(zip(windows, windows.dropFirst()).allSatisfy { $0.end == $1.start })
        var joined = Histogram()
        for window in windows { joined.add(window.latencies) }
        #expect(joined.percentile(99) == all.percentile(99) && joined.count == all.count)
    }

    @Test func aLoadOfKnownLengthHasAboutAHundred() {
        var timeline = BenchTimeline(seconds: 60)
        for step in 1...600 { timeline.observe(Histogram(), failed: 0, at: Double(step) * 0.1) }
        #expect(timeline.windows.count == 100)
    }
}

@Suite struct SparklineTests {
    @Test func heightsAreShares() {
        #expect(Sparkline.text([0, 1, 2, 4, 8], width: 8) == "▁▂▃▅█")
        #expect(Sparkline.text([0, 0], width: 8) == "▁▁")
        #expect(Sparkline.text([1, 2, 3, 4], width: 2) == "▇█")
        #expect(Sparkline.text([], width: 8) == "" && Sparkline.text([1], width: 0) == "")
    }
}

@Suite struct BenchBoardTests {
    @Test func theGoalIsNotRounded() {
        #expect(BenchBoard.progress(0.31, of: .milliseconds(300)) == "0.3 of 0.3 s")
        #expect(BenchBoard.progress(2, of: .seconds(10)) == "2.0 of 10 s")
        #expect(BenchBoard.progress(1, of: .milliseconds(1250)) == "1.0 of 1.250 s")
    }

    private var totals: BenchTotals {
        var totals = BenchTotals()
        for value in 1...1000 { totals.latencies.record(UInt64(value) * 1_000_000) }
        totals.failed = 12
        totals.wrongBodies = 3
        totals.bytes = 5_000_000
        return totals
    }

    private var windows: [BenchWindow] {
        (0..<50).map { second in
            BenchWindow(start: Double(second), end: Double(second + 1), latencies: totals.latencies, failed: 0)
        }
    }

    @Test func noLineIsWiderThanTheTerminal() {
        for columns in Array(1...60) + stride(from: 67, through: 220, by: 9) {
            let lines = BenchBoard.lines(
                totals, windows, title: "closed, 64 at once", progress: "3.1 of 10 s", columns: columns)
            #expect(lines.count == 5)
            for line in lines { #expect(TerminalText.width(line) < max(columns, 2), "\(columns): \(line)") }
        }
    }

    @Test func itTellsRatePercentilesAndFailures() {
        func time(_ percent: Double) -> String { durationText(nanoseconds: totals.latencies.percentile(percent)) }
        let lines = BenchBoard.lines(
            totals, windows, title: "closed, 64 at once", progress: "3.1 of 10 s", columns: 100)
        #expect(lines[0].hasPrefix("closed, 64 at once  ") && lines[0].hasSuffix("  3.1 of 10 s"))
        #expect(lines[1].hasPrefix("rate     ████") && lines[1].hasSuffix("  1,000 per second"))
        #expect(lines[2].hasPrefix("p99      ████") && lines[2].hasSuffix("  \(time(99))"))
        #expect(lines[3].hasPrefix("latency  p50 \(time(50))   p75 \(time(75)) ") && lines[3].hasSuffix("max 1.00 s"))
        #expect(lines[4] == "total    1,000 ok   12 failed   3 wrong bodies   100 kB/s")
    }

    @Test func itIsThereBeforeAnythingWasAnswered() {
        let lines = BenchBoard.lines(BenchTotals(), [], title: "t", progress: "0.0 of 1 s", columns: 80)
        #expect(lines.count == 5 && lines[4].contains("0 ok"))
    }
}

@Suite struct BenchWarningTests {
    private func warnings(
        thread: Double = 0.5, process: Double = 0.5, machine: Double = 0.6, lag: Double = 100, late: Double = 100,
        unsent: UInt64 = 0, seconds: Double = 10, ok: UInt64 = 1
    ) -> [String] {
        let generator = BenchReport.Generator(
            busiestThread: thread, process: process, machine: machine, loopLag: ["p99": lag], lateness: ["p99": late])
        return BenchReport.warnings(generator, seconds: seconds, ok: ok, unsent: unsent)
    }

    @Test func aGeneratorWithTimeToSpareIsNoLimit() {
        #expect(warnings().isEmpty)
    }

    @Test func aShareOfTooLittleSaysNothing() {
        for (thread, process, machine) in [(1.0, 0.5, 0.5), (0.5, 1, 0.5), (0.5, 0.5, 1)] {
            #expect(warnings(thread: thread, process: process, machine: machine).count == 1)
            #expect(warnings(thread: thread, process: process, machine: machine, seconds: 0.003).isEmpty)
            #expect(warnings(thread: thread, process: process, machine: machine, ok: 0).isEmpty)
        }
        #expect(warnings(lag: 25_000, ok: 0).isEmpty)
        #expect(warnings(unsent: 7, seconds: 0.1, ok: 0).count == 1, "it is no share")
    }

    @Test func whatTheGeneratorLacksIsSaid() {
        #expect(warnings(process: 0.97) == ["the generator is the limit: it used 97 % of all cores"])
        #expect(warnings(thread: 0.93).first?.contains("one of its threads was busy 93 %") == true)
        #expect(warnings(machine: 0.99).first?.hasPrefix("the machine is the limit") == true)
        #expect(warnings(lag: 25_000) == ["the generator is the limit: its event loop was late by 25.0 ms (p99)"])
        #expect(warnings(late: 12_000).first?.hasPrefix("requests were sent 12.0 ms after their time") == true)
        #expect(warnings(unsent: 7).first?.hasPrefix("7 requests were not sent") == true)
    }
}

import Testing

@testable import FerryBenchmarks

@Suite struct CurvesOptionsTests {
    @Test func withoutAnyAllCurvesArePlotted() throws {
        let options = try CurvesOptions([])
        #expect(options.kinds == [.concurrency, .bodies, .cache] && options.rounds == 3)
        #expect(options.folder == "Benchmarks/Results" && options.mostEntries == 1_000_000 && options.scale == 1)
    }

    @Test func whatIsSaidIsTaken() throws {
        let options = try CurvesOptions([
            "--curve", "cache", "--curve", "concurrency", "--rounds", "1", "--entries", "1000", "--scale", "0.1",
            "--output", "none",
        ])
        #expect(options.kinds == [.concurrency, .cache] && options.rounds == 1 && options.mostEntries == 1000)
        #expect(options.scale == 0.1 && options.folder == nil)
    }

    @Test(arguments: [
        (["--curve", "latency"], "not latency"),
        (["--rounds", "many"], "--rounds must be a whole number above 0, not many"),
        (["--rounds", "0"], "not 0"), (["--entries", "-5"], "not -5"), (["--scale", "0"], "not 0"),
        (["--scale", "nan"], "not nan"), (["--curve"], "--curve needs a value"), (["--loud"], "unknown option --loud"),
        (["cache"], "unknown option cache"),
    ])
    func whatIsWrongIsSaidBeforeAnythingRuns(arguments: [String], words: String) {
        let error = #expect(throws: BenchmarkError.self) { try CurvesOptions(arguments) }
        #expect("\(error as Any)".contains(words))
    }
}

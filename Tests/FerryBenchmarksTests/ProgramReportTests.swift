import FoundationEssentials
import Testing

@testable import FerryBenchmarks

/// The outputs of the programs.
@Suite struct ProgramReportTests {
    @Test func goesLineBecomesAMeasurement() throws {
        let line = """
            {"bad":3,"cpu_sys_s":0.005328,"cpu_user_s":0.015985,"maxrss_kb":27576,"p50_us":85.427,"p99_us":234.42,\
            "rps":41981.073420783265}
            """
        let measurement = try JSONDecoder().decode(GoReport.self, from: Data(line.utf8)).measurement(total: 1000)
        #expect(measurement.ok == 997 && measurement.wrong == 3)
        #expect((measurement.userPerRequest - 15.985).magnitude < 1e-9)
        #expect((measurement.systemPerRequest - 5.328).magnitude < 1e-9)
        #expect((measurement.rate - 41_981).magnitude < 1)
        #expect(measurement.p50 == 85.427 && measurement.p99 == 234.42 && measurement.peakMemory == 27_576)
    }

    @Test func goCannotCountMoreWrongAnswersThanThereWere() throws {
        func read(_ bad: String) throws -> Measurement {
            let line = #"{"cpu_user_s":1,"cpu_sys_s":1,"rps":0,"p50_us":1,"p99_us":1,"maxrss_kb":1\#(bad)}"#
            return try JSONDecoder().decode(GoReport.self, from: Data(line.utf8)).measurement(total: 10)
        }
        #expect(throws: DecodingError.self) { try read("") }
        #expect(try read(#","bad":0"#).ok == 10)
        #expect(try read(#","bad":0"#).rate == 0)
        #expect(try read(#","bad":99"#).wrong == 10)
        #expect(try read(#","bad":-1"#).wrong == 0)
        #expect(throws: DecodingError.self) { try read("]") }
    }

    @Test func h2loadsReportIsCountedAndItsLongestTimeKept() throws {
        let output = """
            finished in 1.00s, 200.00 req/s, 31.25KB/s
            requests: 200 total, 200 started, 200 done, 197 succeeded, 3 failed, 3 errored, 0 timeout
            status codes: 197 2xx, 0 3xx, 0 4xx, 3 5xx
                                 min         max         mean         sd        +/- sd
            time for request:       62us      1.23ms       210us       163us    96.00%
            """
        let measurement = try #require(H2loadReport(output)).measurement
        #expect(measurement.ok == 197 && measurement.failed == 3 && measurement.maximum == 1230)
        #expect(H2loadReport("requests: 0 total, 0 done, 0 succeeded, 0 failed") == nil)
    }

    /// The environment selects the engine, and the worker has the name of the other engine's.
    @Test func theNativeRivalsAreTheOthersWithAnotherEngine() {
        for rival in Rival.native {
            #expect(Rival(rawValue: rival.worker) != nil && rival.environment == ["FERRY_ENGINE": "automatic"])
        }
        #expect(Rival.await.worker == "await" && Rival.await.environment == ["FERRY_ENGINE": "libcurl"])
    }

    @Test func curlsLinesAreCountedByStatusAndLength() {
        let output = "200 12\n200 12\n200 11\n404 12\n000 0\nnoise\n\n200 12"
        let measurement = CurlLines.measurement(output, length: 12)
        #expect(measurement.ok == 3 && measurement.wrong == 3)
        #expect(CurlLines.measurement("", length: 12).total == 0)
    }

    @Test func curlsClockCountsOnlyForTheWholeBody() {
        #expect(CurlTransfer.seconds("0.006165 100000", size: 100_000) == 0.006165)
        #expect(CurlTransfer.seconds("0.006165 99999", size: 100_000) == nil)
        #expect(CurlTransfer.seconds("0,006165 100000", size: 100_000) == nil)
        #expect(CurlTransfer.seconds("", size: 0) == nil)
    }
}

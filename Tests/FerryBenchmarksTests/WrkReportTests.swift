import Testing

@testable import FerryBenchmarks

/// The output of wrk 4.1.0.
@Suite struct WrkReportTests {
    @Test func countsTimesAndPercentilesAreRead() throws {
        let report = try #require(
            WrkReport(
                """
                Running 1s test @ http://127.0.0.1:44767/hello
                  1 threads and 8 connections
                  Thread Stats   Avg      Stdev     Max   +/- Stdev
                    Latency   304.08us  722.10us   7.26ms   90.75%
                    Req/Sec    61.23k    17.26k   81.83k    41.67%
                  Latency Distribution
                     50%   74.00us
                     75%   85.00us
                     90%    0.90ms
                     99%    3.60ms
                  73399 requests in 1.21s, 7.98MB read
                Requests/sec:  60805.71
                Transfer/sec:      6.61MB

                """))
        let measurement = report.measurement
        #expect(measurement.ok == 73_399 && measurement.wrong == 0 && measurement.failed == 0)
        #expect(measurement.seconds == 1.21)
        #expect((measurement.rate - 60_660).magnitude < 1)
        #expect(measurement.p50 == 74 && measurement.p90 == 900 && measurement.p99 == 3600)
    }

    @Test func otherStatusesAreWrongAndBrokenSocketsFailures() throws {
        let report = try #require(
            WrkReport(
                """
                Running 1m test @ http://127.0.0.1:44767/status/404
                  1 threads and 2 connections
                  Thread Stats   Avg      Stdev     Max   +/- Stdev
                    Latency     2.63ms   10.66ms  80.83ms   95.42%
                    Req/Sec    38.09k    18.88k   65.68k    63.64%
                  Latency Distribution
                     50%    1.10s
                     75%    1.20s
                     90%    2.00s
                     99%    1.50m
                  41608 requests in 1.00m, 3.25MB read
                  Socket errors: connect 1, read 20, write 300, timeout 4000
                  Non-2xx or 3xx responses: 41600
                Requests/sec:  37823.32
                Transfer/sec:      2.96MB

                """))
        let measurement = report.measurement
        #expect(measurement.ok == 8 && measurement.wrong == 41_600 && measurement.failed == 4321)
        #expect(measurement.seconds == 60)
        #expect(measurement.p50 == 1.1e6 && measurement.p99 == 90e6)
    }

    @Test(arguments: [
        "", "Usage: wrk <options> <url>\n    -c, --connections <N>  Connections to keep open\n",
        "unable to connect to 127.0.0.1:1 Connection refused\n", "  0 requests in 1.00s, 0.00B read\n",
    ])
    func whatIsNoReportIsNone(text: String) {
        #expect(WrkReport(text) == nil)
    }
}

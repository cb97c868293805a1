import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct LatencyHistogramTests {
    private func histogram(_ values: [Duration]) -> LatencyHistogram {
        let recorder = LatencyRecorder()
        for value in values { recorder.record(value) }
        return recorder.histogram
    }

    @Test func everyValueLiesInItsBucketAndNoHigherThanPromised() {
        var last = -1
        for exponent in 0..<37 {
            for offset in [-1, 0, 1, 3] {
                let value = (1 << exponent) + offset
                if value < 1 || value > 1 << 36 { continue }
                let bucket = LatencyHistogram.bucket(of: UInt64(value))
                let end = LatencyHistogram.upperEnd(of: bucket)
                #expect(end >= UInt64(value) && Double(end) <= Double(value) * 1.0626 + 1)
                #expect(bucket == 0 || LatencyHistogram.upperEnd(of: bucket - 1) < UInt64(value))
                last = max(last, bucket)
            }
        }
        #expect(last == LatencyHistogram.bucketCount - 1)
        #expect(LatencyHistogram.bucket(of: .max) == LatencyHistogram.bucketCount - 1)
        #expect(LatencyHistogram.bucket(of: 0) == 0)
    }

    @Test func percentilesAreOfTheValuesRecorded() {
        let values = histogram((1...1000).map { .microseconds($0) })
        #expect(values.count == 1000 && values.maximum == .microseconds(1000))
        #expect(values.mean == .microseconds(500) + .nanoseconds(500))
        for (percent, exact) in [(50.0, 500), (90, 900), (99, 990), (100, 1000), (0, 1)] {
            let found = values.percentile(percent)
            #expect(found >= .microseconds(exact) && found <= .microseconds(exact) * 1.0626)
        }
        #expect(values.percentile(100) == values.maximum)
        #expect(values.percentile(400) == values.maximum && values.percentile(-1) == .microseconds(1))
    }

    @Test func nothingRecordedIsZero() {
        let empty = histogram([])
        #expect(empty.count == 0 && empty.mean == .zero && empty.percentile(99) == .zero && empty.sum == .zero)
    }

    @Test func oddDurationsAreCountedToo() {
        let odd = histogram([.zero, .seconds(-1), .nanoseconds(1), .seconds(1_000_000), .seconds(Int64.max)])
        #expect(odd.count == 5)
        #expect(odd.counts(atMost: [1]) == [3])
    }

    @Test func aPowerOfTwoIsAnEndOfABucket() {
        let values = histogram([.microseconds(127), .microseconds(128), .nanoseconds(128_001), .microseconds(129)])
        #expect(values.counts(atMost: [128, 256]) == [2, 4])
    }
}

@Suite struct MetricsRecorderTests {
    private let request = RunInfo(id: 1, method: .get, url: "http://kim:canary@h/canary?t=canary", tag: "canary")

    private func metrics(_ change: (inout RequestMetrics) -> Void = { _ in }) -> RequestMetrics {
        var metrics = RequestMetrics()
        metrics.total = .milliseconds(2)
        metrics.attempts = 1
        metrics.bytesSent = 100
        metrics.bytesReceived = 1000
        change(&metrics)
        return metrics
    }

    private func end(_ recorder: MetricsRecorder, _ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        recorder.willStart(run)
        recorder.willStop(run, outcome)
        recorder.metrics(run, metrics)
        recorder.didStop(run, outcome)
    }

    @Test func everythingIsCountedOnce() {
        let recorder = MetricsRecorder()
        let finished = RunOutcome.finished(status: 200, isFromCache: false)
        end(recorder, request, finished, metrics { $0.isReusedConnection = true })
        end(recorder, request, .finished(status: 200, isFromCache: true), metrics { $0.attempts = 0 })
        end(recorder, request, .failed(RequestError(.timeout(.connect))), metrics { $0.attempts = 3 })
        end(recorder, request, .failed(RequestError(.invalidStatusCode(503))), metrics { $0.redirects = 2 })
        end(recorder, request, .failed(RequestError(.invalidStatusCode(500))), metrics())
        end(recorder, request, .failed(RequestError(.incompleteBody(expected: 7, got: 3))), metrics())
        end(recorder, request, .cancelled, metrics())
        end(recorder, RunInfo(id: 9, kind: .batch), finished, metrics())
        end(recorder, RunInfo(id: 10, kind: .chain), .failed(RequestError(.shutdown)), metrics())
        recorder.willStart(request)

        let snapshot = recorder.snapshot
        #expect(snapshot.requests == .init(started: 8, finished: 2, failed: 4, cancelled: 1))
        #expect(snapshot.requests.inFlight == 1)
        #expect(snapshot.batches == .init(started: 1, finished: 1))
        #expect(snapshot.chains == .init(started: 1, failed: 1))
        #expect(snapshot.failures == ["timeout(connect)": 1, "invalidStatusCode": 2, "incompleteBody": 1])
        #expect(snapshot.fromCache == 1 && snapshot.retries == 2 && snapshot.redirects == 2)
        #expect(snapshot.reusedConnections == 1)
        #expect(snapshot.bytesSent == 700 && snapshot.bytesReceived == 7000, "groups send nothing themselves")
        #expect(snapshot.latency.count == 7)
        #expect(snapshot.hosts.isEmpty)
    }

    @Test func hostsBeyondTheBoundAreOther() {
        let recorder = MetricsRecorder(maxHosts: 2)
        for host in ["a", "b:81", "c", "d", "a"] {
            let run = RunInfo(id: 1, url: "http://\(host)/x")
            end(recorder, run, .finished(status: 200, isFromCache: false), metrics())
        }
        let hosts = recorder.snapshot.hosts
        #expect(hosts.mapValues(\.finished) == ["a": 2, "b:81": 1, "other": 2])
        #expect(hosts.mapValues(\.latency.count) == ["a": 2, "b:81": 1, "other": 2])
    }

    @Test func countsOfManyThreadsAreExact() async {
        let recorder = MetricsRecorder(maxHosts: 4)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    let run = RunInfo(id: 1, url: "http://h\(task)/")
                    for _ in 0..<2_000 {
                        self.end(recorder, run, .failed(RequestError(.connectionReset)), self.metrics())
                    }
                }
            }
        }
        let snapshot = recorder.snapshot
        #expect(snapshot.requests == .init(started: 8_000, failed: 8_000))
        #expect(snapshot.failures == ["connectionReset": 8_000])
        #expect(snapshot.bytesSent == 800_000 && snapshot.latency.count == 8_000)
        #expect(snapshot.hosts.values.map(\.failed) == [2_000, 2_000, 2_000, 2_000])
    }

    @Test func textIsThatOfPrometheus() throws {
        let recorder = MetricsRecorder(maxHosts: 8)
        end(recorder, request, .finished(status: 200, isFromCache: false), metrics())
        end(recorder, request, .failed(RequestError(.timeout(.connect))), metrics { $0.total = .seconds(100) })
        let text = recorder.prometheusText()
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for line in [
            "# TYPE ferry_requests_total counter", "ferry_requests_started_total 2",
            "ferry_requests_total{outcome=\"finished\"} 1", "ferry_requests_total{outcome=\"cancelled\"} 0",
            "ferry_requests_in_flight 0", "ferry_request_failures_total{code=\"timeout(connect)\"} 1",
            "ferry_groups_total{kind=\"chain\",outcome=\"failed\"} 0",
            "ferry_request_bytes_total{direction=\"received\"} 2000",
            "ferry_request_duration_seconds_bucket{le=\"0.001024\"} 0",
            "ferry_request_duration_seconds_bucket{le=\"0.002048\"} 1",
            "ferry_request_duration_seconds_bucket{le=\"67.108864\"} 1",
            "ferry_request_duration_seconds_bucket{le=\"+Inf\"} 2", "ferry_request_duration_seconds_sum 100.002000",
            "ferry_request_duration_seconds_count 2", "ferry_host_requests_total{host=\"h\",outcome=\"failed\"} 1",
            "ferry_host_request_duration_seconds_bucket{host=\"h\",le=\"0.002048\"} 1",
        ] {
            #expect(lines.contains(line), "\(line)")
        }
        #expect(lines.last?.isEmpty == true, "it ends with a line feed")
        let comment = /# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))/
        let sample = /[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.]+/
        var families: [Substring] = []
        for line in lines.dropLast() {
            let isWellFormed = try comment.wholeMatch(in: line) != nil || sample.wholeMatch(in: line) != nil
            #expect(isWellFormed, "\(line)")
            if line.hasPrefix("# TYPE") { families.append(line.split(separator: " ")[2]) }
        }
        #expect(Set(families).count == families.count, "a family stands in one place")
        #expect(!text.contains("canary"))
    }

    @Test func bucketsAreThoseThatWereAskedFor() {
        let recorder = MetricsRecorder(
            maxHosts: 1, durationBounds: [.seconds(1), .milliseconds(3), .milliseconds(3), .seconds(-1)])
        for time in [Duration.milliseconds(2), .milliseconds(3), .nanoseconds(3_000_001), .seconds(1), .seconds(2)] {
            end(recorder, request, .finished(status: 200, isFromCache: false), metrics { $0.total = time })
        }
        let lines = recorder.prometheusText().split(separator: "\n").map(String.init)
        for (name, labels) in [("request", ""), ("host_request", "host=\"h\",")] {
            #expect(
                lines.filter { $0.hasPrefix("ferry_\(name)_duration_seconds_bucket") }
                    == [("0.000000", 0), ("0.003000", 2), ("1.000000", 4), ("+Inf", 5)].map {
                        "ferry_\(name)_duration_seconds_bucket{\(labels)le=\"\($0)\"} \($1)"
                    })
        }
    }

    @Test func labelsAreEscaped() {
        let recorder = MetricsRecorder(maxHosts: 8)
        let run = RunInfo(id: 1, url: "http://a\"b/")
        end(recorder, run, .cancelled, metrics())
        #expect(recorder.prometheusText().contains("{host=\"a\\\"b\",outcome=\"cancelled\"} 1\n"))
    }
}

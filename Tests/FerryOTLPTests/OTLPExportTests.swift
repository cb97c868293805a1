import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryOTLP

@Suite("OTLPExporter: exports", .timeLimit(.minutes(1)))
struct OTLPExportTests {
    /// A collector that responds with these statuses in turn, and then with 200.
    private func collector(_ statuses: [Int]) throws -> LoopbackServer {
        let server = try LoopbackServer()
        let left = Mutex(statuses)
        server.handle("POST", "/v1/*") { _ in
            let status = left.withLock { $0.isEmpty ? 200 : $0.removeFirst() }
            return LoopbackResponse(status: status, headers: ["Retry-After": "0"], body: Array("{}".utf8))
        }
        return server
    }

    private func exporter(_ server: LoopbackServer, _ change: (inout OTLPConfiguration) -> Void = { _ in })
        -> OTLPExporter
    {
        var configuration = OTLPConfiguration()
        configuration.endpoint = server.baseURL
        configuration.spanInterval = .seconds(3600)
        configuration.exportsMetrics = false
        change(&configuration)
        return OTLPExporter(configuration)
    }

    private func run(_ exporter: OTLPExporter, _ count: Int = 1) async throws {
        var configuration = NetworkConfiguration()
        configuration.observers = [exporter]
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        for _ in 0..<count { _ = try await agent.get("http://h/") }
    }

    @Test func whatTheCollectorMayTakeLaterIsSentAgain() async throws {
        let server = try collector([503, 429])
        let exporter = exporter(server)
        try await run(exporter)
        await exporter.flush()
        #expect(server.requestCount == 3)
        #expect(exporter.statistics.figures == statistics(exported: 2))
        await exporter.shutdown()
    }

    @Test("The key of the collector goes to no other server", arguments: [301, 303, 307])
    func redirects(status: Int) async throws {
        let (server, other) = (try LoopbackServer(), try LoopbackServer())
        let keys = Mutex<[String?]>([])
        other.handle("/v1/*") { request in
            keys.withLock { $0.append(request.method + " " + (request.headers["x-team"] ?? "no key")) }
            return LoopbackResponse(json: "{}")
        }
        server.handle("POST", "/v1/*") { request in
            LoopbackResponse(status: status, headers: ["Location": other.baseURL + request.path])
        }
        let exporter = exporter(server) { $0.headers = ["x-team": "canary"] }
        try await run(exporter)
        await exporter.flush()
        let isExported = status != 303
        #expect(keys.withLock { $0 } == (isExported ? ["POST no key"] : []))
        let expected = isExported ? statistics(exported: 2) : statistics(dropped: 1, failed: 1)
        #expect(exporter.statistics.figures == expected)
        await exporter.shutdown()
    }

    @Test func whatItRefusesIsDroppedAndCounted() async throws {
        let server = try collector([400])
        let exporter = exporter(server)
        try await run(exporter)
        await exporter.flush()
        #expect(exporter.statistics.figures == statistics(dropped: 1, failed: 1))
        try await run(exporter)
        await exporter.flush()
        #expect(exporter.statistics.figures == statistics(exported: 2, dropped: 1, failed: 1))
        await exporter.shutdown()
    }

    /// Each export waited for the whole deadline: those that were queued, the one for the flush, and the last ones.
    @Test func aShutdownWaitsForACollectorThatHangsForOneDeadlineInAll() async throws {
        let server = try LoopbackServer()
        server.script([.expectHead, .expectBody, .mark("export"), .keepOpen])
        let exporter = exporter(server) { $0.deadline = .milliseconds(500) }
        try await run(exporter)
        async let flushed: Void = exporter.flush()
        try await server.waitForMark("export")
        await exporter.shutdown()
        await flushed
        // Nothing is exported when the time is over.
        #expect(exporter.statistics.failedExports <= 2 && exporter.statistics.droppedRuns == 1)
    }

    @Test(arguments: [#""1""#, "1"]) func whatItTakesInPartIsCounted(count: String) async throws {
        let answer = #"{"partialSuccess":{"rejectedSpans":\#(count),"errorMessage":"no"}}"#
        let collector = try Collector(answer: LoopbackResponse(json: answer))
        let exporter = collector.exporter()
        try await run(exporter)
        await exporter.flush()
        #expect(exporter.statistics.figures == statistics(exported: 1, rejected: 1))
        await exporter.shutdown()
    }

    @Test(arguments: ["", "taken", #"{"partialSuccess":{"rejectedSpans":"-7"}}"#, #"{"partialSuccess":[]}"#, "[1]"])
    func anAnswerThatMakesNoSenseIsStillAnAnswer(_ text: String) async throws {
        let collector = try Collector(answer: LoopbackResponse(text: text))
        let exporter = collector.exporter()
        try await run(exporter)
        await exporter.flush()
        #expect(exporter.statistics.figures == statistics(exported: 2))
        await exporter.shutdown()
    }

    @Test func oneBatchIsNoLargerThanItMayBe() async throws {
        let server = try collector([])
        let exporter = exporter(server) { $0.maxBatch = 4 }
        try await run(exporter, 10)
        await exporter.flush()
        #expect(server.requestCount == 3)
        #expect(exporter.statistics.figures == statistics(exported: 20))
        await exporter.shutdown()
    }

    @Test func anExportHasTheRunsThatEndedBeforeIt() async throws {
        let server = try LoopbackServer()
        let exporter = exporter(server)
        let count = Mutex(0)
        // Under load each export finds new runs when it is over.
        server.handle("POST", "/v1/*") { [weak exporter] _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number < 20, let exporter { self.end(exporter) }
            return LoopbackResponse(json: "{}")
        }
        end(exporter)
        await exporter.flush()
        #expect(server.requestCount == 1)
        await exporter.flush()
        #expect(server.requestCount == 2)
        await exporter.shutdown()
    }

    /// A run without an attempt is over.
    private func end(_ exporter: OTLPExporter) {
        let run = RunInfo(id: 1)
        exporter.end(
            exporter.begin({ "GET" }, below: nil), of: run, .finished(status: 200, isFromCache: false), RunTotals())
    }

    @Test func aQueueThatIsStillHalfFullBehindAnExportIsExportedAgain() async throws {
        let server = try LoopbackServer()
        let exporter = exporter(server) { $0.maxQueuedRuns = 8 }
        let isFirst = Mutex(true)
        server.handle("POST", "/v1/*") { [weak exporter] _ in
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if isFirst, let exporter { for _ in 0..<6 { self.end(exporter) } }
            return LoopbackResponse(json: "{}")
        }
        end(exporter)
        await exporter.flush()
        try await server.waitForRequests(2)
        await exporter.shutdown()
        #expect(exporter.statistics.figures == statistics(exported: 7))
    }

    @Test func halfAQueueIsExportedAtOnce() async throws {
        let server = try collector([])
        let exporter = exporter(server) { $0.maxQueuedRuns = 8 }
        try await run(exporter, 4)
        try await server.waitForRequests(1)
        await exporter.shutdown()
    }

    @Test func spansDoNotWaitLongerThanTheInterval() async throws {
        let server = try collector([])
        let exporter = exporter(server) { $0.spanInterval = .milliseconds(20) }
        try await run(exporter)
        try await server.waitForRequests(1)
        await exporter.shutdown()
    }

    @Test func metricsThatAreDueWhileTheCollectorIsSlowAreExportedOnce() async throws {
        let server = try LoopbackServer()
        server.script(
            path: "/v1/metrics",
            LoopbackScript([
                .expectHead, .expectBody, .pause(.milliseconds(600)),
                .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"), .close,
            ]))
        let exporter = exporter(server) {
            $0.exportsMetrics = true
            $0.metricsInterval = .milliseconds(10)
        }
        try await withLoopbackServer { service in
            var configuration = NetworkConfiguration()
            configuration.observers = [exporter]
            let agent = NetworkAgent(configuration: configuration)
            _ = try await agent.get(service.baseURL + "/hello")
            // Sixty are due while the first one waits.
            try await server.waitForRequests(2)
            await exporter.shutdown()
            await agent.shutdown()
        }
        // The first metrics, those due meanwhile, those due during that, the last at shutdown; and the spans.
        #expect((2...5).contains(server.requestCount), "\(server.requestCount) exports")
    }

    @Test func histogramBoundsMayBeLargerThanAnyDuration() {
        var configuration = OTLPConfiguration()
        configuration.durationBounds = [1, .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .infinity, .nan]
        let table = DurationTable(configuration, since: 0)
        let series = DurationTable.Series(method: "GET", authority: "h", isSecure: false, status: 200)
        table.record(.seconds(2), of: series)
        let points = table.metrics(at: 1).first?.histogram.dataPoints
        #expect(points?.first?.bucketCounts == ["0", "0", "1", "0"])
    }

    @Test func aCollectorThatIsDownCostsWhatItDidNotTake() async throws {
        let server = try collector([])
        let exporter = exporter(server) {
            $0.endpoint = "http://127.0.0.1:1"
            $0.deadline = .milliseconds(300)
            $0.maxBatch = 2
        }
        try await run(exporter, 6)
        await exporter.flush()
        // One batch was tried; the others wait for the next time, and are freed with the exporter.
        #expect(exporter.statistics.figures == statistics(dropped: 2, failed: 1))
        await exporter.shutdown()
        #expect(exporter.statistics.figures == statistics(dropped: 6, failed: 2))
        await exporter.flush()
        await exporter.shutdown()
    }

    /// Otherwise each waits for those before it, and for the deadline of each.
    @Test func allWhoWaitForAFlushWaitForTheSameOne() async throws {
        let server = try LoopbackServer()
        server.handle("POST", "/v1/traces") { _ in LoopbackResponse(json: "{}") }
        server.script(
            path: "/v1/metrics", uses: 1,
            [.expectBody, .wait("on"), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .serve])
        server.handle("POST", "/v1/metrics") { _ in LoopbackResponse(json: "{}") }
        let exporter = exporter(server) { $0.exportsMetrics = true }
        try await run(exporter)
        let first = Task { await exporter.flush() }
        try await server.waitForRequests(2)
        var others: [Task<Void, Never>] = []
        for _ in 0..<8 { others.append(await waiting { await exporter.flush() }) }
        server.signal("on")
        await first.value
        for other in others { await other.value }
        #expect(server.requestCount == 3)
        await exporter.shutdown()
    }

    /// It can no longer be an export of its own.
    @Test func aFlushDuringAShutdownWaitsForTheLastExports() async throws {
        let server = try LoopbackServer()
        server.script(
            path: "/v1/traces", uses: 1,
            [.expectBody, .wait("on"), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .serve])
        let exporter = exporter(server)
        try await run(exporter)
        let ending = Task { await exporter.shutdown() }
        try await server.waitForRequests(1)
        let isOver = Mutex(false)
        let flush = await waiting {
            await exporter.flush()
            isOver.withLock { $0 = true }
        }
        let wasOver = isOver.withLock { $0 }
        #expect(!wasOver)
        server.signal("on")
        await flush.value
        #expect(exporter.statistics.figures == statistics(exported: 2))
        await ending.value
        await exporter.flush()
    }

    /// The collector takes the request, and says nothing.
    @Test func aCollectorThatNeverAnswersHoldsNobodyBeyondTheDeadline() async throws {
        let server = try LoopbackServer()
        server.script(path: "/", [.expectBody, .keepOpen])
        let exporter = exporter(server) {
            $0.deadline = .milliseconds(300)
            $0.exportsMetrics = true
            $0.spanInterval = .milliseconds(10)
            $0.metricsInterval = .milliseconds(10)
        }
        try await run(exporter)
        try await server.waitForRequests(1)
        async let flushed: Void = exporter.flush()
        async let ended: Void = exporter.shutdown()
        await exporter.shutdown()
        _ = await (flushed, ended)
        #expect(exporter.statistics.droppedRuns == 1 && exporter.statistics.exportedSpans == 0)
        await exporter.flush()
    }

    @Test func theQueueTakesSoManyRunsAndCountsTheRest() {
        var runs = RecordedRuns(most: 4)
        let run = RecordedRun(
            RunSpan(TraceContext(), below: 0, isRecorded: true), RunInfo(id: 1),
            .finished(status: 200, isFromCache: false))
        let halves = (0..<6).map { _ in runs.append(run) }
        #expect(halves == [false, true, false, false, false, false])
        #expect(runs.count == 4 && runs.dropped == 2)
        let (taken, isHalf) = (runs.take(3).count, runs.append(run))
        #expect(taken == 3 && isHalf)
        let (dropped, left) = (runs.drop(), runs.take(1).count)
        #expect(dropped == 2 && left == 0)
        var boundless = RecordedRuns(most: .max)
        let isFull = boundless.append(run)
        #expect(!isFull)
    }

    @Test func durationsAreCountedInTheirBuckets() throws {
        var configuration = OTLPConfiguration()
        configuration.durationBounds = [0.1, 1]
        configuration.maxSeries = 1
        let table = DurationTable(configuration, since: 7)
        #expect(table.metrics(at: 8).isEmpty)
        let known = DurationTable.Series(method: "GET", authority: "h", isSecure: true, status: 200)
        for milliseconds in [50, 100, 101, 2_000] { table.record(.milliseconds(milliseconds), of: known) }
        for status in 201...300 {
            table.record(
                .seconds(1), of: DurationTable.Series(method: "GET", authority: "h", isSecure: true, status: status))
        }
        let points = try #require(table.metrics(at: 8).first).histogram.dataPoints
        #expect(points.count == 2)
        let point = try #require(points.first { $0.count == "4" })
        #expect(point.bucketCounts == ["2", "1", "1"] && abs(point.sum - 2.251) < 1e-9 && point.max == 2)
        #expect(point.startTimeUnixNano == "7" && point.timeUnixNano == "8")
        #expect(points.first { $0.count == "100" }?.attributes.first?.key == "otel.metric.overflow")
    }

    @Test(arguments: [
        ("h", true, "h", "443"), ("h", false, "h", "80"), ("h:8443", true, "h", "8443"),
        ("[::1]:8080", false, "::1", "8080"), ("[::1]", false, "::1", "80"), ("", false, "", "80"),
    ]) func anAuthorityIsAddressAndPort(_ text: String, isSecure: Bool, host: String, port: String) throws {
        let made = OTLPAttribute.server(text, isSecure: isSecure)
        try #require(made.map(\.key) == ["server.address", "server.port"])
        guard case .text(let address) = made[0].value, case .number(let number) = made[1].value else {
            Issue.record("\(made)")
            return
        }
        #expect(address == host && String(number) == port)
    }

    @Test func theEnvironmentSaysWhereTo() {
        let configuration = OTLPConfiguration(environment: [
            "OTEL_SERVICE_NAME": "shop", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=other, team=a%2Cb,broken,=x",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=k%3D1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1500",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
            "OTEL_BSP_SCHEDULE_DELAY": "-1",
            "OTEL_METRIC_EXPORT_INTERVAL": "soon",
        ])
        #expect(configuration.serviceName == "shop" && configuration.endpoint == "http://collector:4318")
        #expect(configuration.resource == ["team": "a,b"])
        #expect(configuration.headers["api-key"] == "k=1")
        #expect(configuration.deadline == .milliseconds(1500) && configuration.sampledFraction == 0.25)
        #expect(configuration.spanInterval == .seconds(5) && configuration.metricsInterval == .seconds(60))
        // The argument is that of a sampler (OpenTelemetry's specification of environment variables).
        let samplers = [(nil, 1), ("TraceIDRatio", 0.5), ("always_off", 0), ("always_on", 1), ("jaeger", 1)]
        for (sampler, fraction) in samplers {
            var environment = ["OTEL_TRACES_SAMPLER_ARG": "0.5"]
            environment["OTEL_TRACES_SAMPLER"] = sampler
            #expect(OTLPConfiguration(environment: environment).sampledFraction == fraction)
        }
        let bare = OTLPConfiguration(environment: [
            "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "7",
        ])
        #expect(bare.serviceName == "unknown_service" && bare.sampledFraction == 1 && bare.headers.isEmpty)
    }

    @Test func theShareOfTracesThatIsSampledIsTheOneAskedFor() {
        let sampled = (0..<20_000).count { _ in TraceContext.begin(sampling: 0.1).isSampled }
        #expect((1_700...2_300).contains(sampled))
        #expect(TraceContext.begin(sampling: 1).isSampled && !TraceContext.begin(sampling: 0).isSampled)
    }
}

import Ferry
import FerryOTLP
import FerrySynchronization
import FerryTesting
import Testing

@Suite("OTLPExporter: spans", .timeLimit(.minutes(1)))
struct OTLPSpanTests {
    @Test func aRunAndItsAttemptsAreSpansOfOneTrace() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        let agent = observed(exporter)
        let sent = Mutex<[String]>([])
        service.handle("/new") { request in
            sent.withLock { $0.append(request.headers["traceparent"] ?? "") }
            return LoopbackResponse(text: "here")
        }
        _ = try await agent.get(service.baseURL + "/redirect-to?url=/new")
        await exporter.flush()
        let spans = try collector.spans
        try #require(spans.count == 3)
        let (run, first, second) = (spans[0], spans[1], spans[2])
        #expect(run.name == "GET" && run.kind == 1 && run.parent == "" && !run.failed)
        #expect(run["http.response.status_code"] == "200")
        #expect([first.kind, second.kind] == [3, 3])
        #expect([first.parent, second.parent] == [run.id, run.id])
        #expect([first.trace, second.trace] == [run.trace, run.trace])
        #expect(first["http.response.status_code"] == "302" && first["http.request.resend_count"] == nil)
        #expect(second["http.response.status_code"] == "200" && second["http.request.resend_count"] == "1")
        #expect(second["server.address"] == "127.0.0.1" && second["server.port"] == "\(service.port)")
        #expect(second["network.peer.port"] == "\(service.port)" && second["network.protocol.version"] == "1.1")
        #expect(sent.withLock { $0 } == ["00-\(run.trace ?? "")-\(second.id ?? "")-01"])
        let times = try [run.start, first.start, first.end, second.start, second.end, run.end].map { try #require($0) }
        #expect(times[0] <= times[1] && times[1] <= times[2] && times[3] <= times[4] && times[4] <= times[5])
        await exporter.shutdown()
        #expect(exporter.statistics.figures == statistics(exported: 3))
    }

    @Test func aRunBelongsToTheTraceAtHand() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter { $0.sampledFraction = 0 }
        let agent = observed(exporter)
        let context = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=1"))
        _ = try await TraceContext.$current.withValue(context) { try await agent.get(service.baseURL + "/hello") }
        await exporter.shutdown()
        let spans = try collector.spans
        #expect(spans.count == 2)
        #expect(spans.allSatisfy { $0.trace == "0af7651916cd43dd8448eb211c80319c" })
        #expect(spans.first?.parent == "b7ad6b7169203331")
        #expect(spans.first?.json["traceState"]?.string == "a=1")
    }

    @Test(arguments: [false, true]) func whatIsNotSampledIsToldToTheServerAndNotExported(hasParent: Bool) async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter { if !hasParent { $0.sampledFraction = 0 } }
        let agent = observed(exporter)
        let parent = hasParent ? TraceContext(isSampled: false) : nil
        _ = try await TraceContext.$current.withValue(parent) { try await agent.get(service.baseURL + "/hello") }
        await exporter.shutdown()
        let spans = try collector.spans
        #expect(spans.isEmpty)
        let field = try #require(service.requests.last?.headers["traceparent"])
        #expect(field.hasSuffix("-00"))
        if let parent { #expect(field.contains("\(parent.traceID)")) }
        let points = try collector.points
        #expect(points.count == 1)
    }

    /// A collector that gets no spans would show a trace whose beginning is missing.
    @Test(arguments: [false, true]) func withoutExportOfTracesOnlyTheTraceAtHandIsSent(hasParent: Bool) async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter { $0.exportsTraces = false }
        let parent = hasParent ? TraceContext() : nil
        _ = try await TraceContext.$current.withValue(parent) {
            try await observed(exporter).get(service.baseURL + "/hello")
        }
        await exporter.shutdown()
        let spans = try collector.spans
        let points = try collector.points
        #expect(spans.isEmpty && points.count == 1)
        let field = service.requests.last?.headers["traceparent"]
        #expect((field != nil) == hasParent)
        if let parent { #expect(field?.contains("\(parent.traceID)") == true) }
    }

    @Test func aTransferThatRunsShareBelongsToTheRunThatStartedIt() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        var request = HTTPRequest(.get, service.baseURL + "/hello")
        request.coalesces = true
        _ = try await observed(exporter).send(request)
        await exporter.shutdown()
        let spans = try collector.spans
        let run = try #require(spans.first)
        let expected = "00-\(run.trace ?? "")-\(run.id ?? "")-01"
        #expect(service.requests.last?.headers["traceparent"] == expected && spans.count == 1)
    }

    /// Each would be a series of its own (OpenTelemetry's semantic conventions for HTTP).
    @Test func aMethodThatIsNotKnownIsOther() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        let agent = observed(exporter)
        for method in ["FOO", "BAR"] {
            var request = HTTPRequest(HTTPMethod(method), service.baseURL + "/hello")
            request.statusValidation = .any
            _ = try await agent.send(request)
        }
        await exporter.shutdown()
        let spans = try collector.spans
        #expect(spans.count == 4 && spans.allSatisfy { $0["http.request.method"] == "_OTHER" })
        #expect(spans.map { $0["http.request.method_original"] } == ["FOO", "FOO", "BAR", "BAR"])
        #expect(spans.map(\.name) == ["FOO", "HTTP", "BAR", "HTTP"])
        let points = try collector.points
        #expect(points.count == 1)
    }

    @Test func aRequestMayKeepTheTraceToItself() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        var request = HTTPRequest(.get, service.baseURL + "/hello")
        request.propagatesTrace = false
        _ = try await observed(exporter).send(request)
        await exporter.shutdown()
        #expect(service.requests.last?.headers["traceparent"] == nil)
        let spans = try collector.spans
        #expect(spans.count == 2)
    }

    @Test func anotherOriginIsNotToldOfTheTrace() async throws {
        let (collector, service, other) = (try Collector(), try LoopbackServer(), try LoopbackServer())
        let exporter = collector.exporter()
        _ = try await observed(exporter).get(service.baseURL + "/redirect-to?url=" + other.baseURL + "/hello")
        await exporter.shutdown()
        #expect(other.requests.last?.headers["traceparent"] == nil)
        let spans = try collector.spans
        #expect(spans.count == 3)
    }

    @Test func failuresAreErrors() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        service.script(path: "/reset", [.expectHead, .reset])
        let exporter = collector.exporter()
        let agent = observed(exporter)
        for url in [service.baseURL + "/status/500", service.baseURL + "/reset", "http://127.0.0.1:1/"] {
            await #expect(throws: RequestError.self) { try await agent.get(url) }
        }
        await exporter.shutdown()
        let spans = try collector.spans
        try #require(spans.count == 6)
        #expect(spans.allSatisfy { $0.failed })
        #expect(spans[0]["error.type"] == "invalidStatusCode" && spans[1]["error.type"] == "500")
        #expect(spans[3]["error.type"] == spans[2]["error.type"])
        let errors = try collector.points.map { attributeValue("error.type", in: $0) ?? "" }
        #expect(Set(errors) == Set([0, 2, 4].map { spans[$0]["error.type"] ?? "none" }))
    }

    @Test func anAttemptThatWasUnderWayEndsWithItsCancelledRun() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        service.script(path: "/never", [.expectHead, .mark("asked"), .expectClose])
        let exporter = collector.exporter()
        let agent = observed(exporter)
        let url = service.baseURL + "/never"
        let task = Task { try await agent.get(url) }
        try await service.waitForMark("asked")
        task.cancel()
        _ = await task.result
        await exporter.shutdown()
        let spans = try collector.spans
        #expect(spans.count == 2)
        #expect(spans.map { $0["error.type"] } == ["cancelled", "cancelled"])
        #expect(spans.allSatisfy { ($0.end ?? 0) >= ($0.start ?? 1) })
    }

    /// It waited for a place, or for a retry.
    @Test func aRunThatIsCancelledBeforeItIsSentAgainIsASpanWithTheAttemptsThatItHad() async throws {
        let (collector, stub) = (try Collector(), StubTransport(always: .response(status: 503)))
        let exporter = collector.exporter()
        var configuration = NetworkConfiguration(baseURL: "http://h")
        configuration.observers = [exporter]
        configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .seconds(3600), maxDelay: .seconds(3600))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let task = Task { try await agent.get("/x") }
        await stub.waitForRequests(1)
        task.cancel()
        _ = await task.result
        stub.suspend()
        let waiting = Task { try await agent.get("/y") }
        await stub.waitForRequests(2)
        waiting.cancel()
        stub.resume()
        _ = await waiting.result
        await exporter.shutdown()
        let spans = try collector.spans
        #expect(spans.filter { $0.kind == 1 }.map { $0["error.type"] } == ["cancelled", "cancelled"])
        #expect(spans.allSatisfy { ($0.end ?? 0) >= ($0.start ?? 1) })
        await agent.shutdown()
    }

    @Test func noSecretIsExported() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        let url = "http://kim:pass-word@127.0.0.1:\(service.port)/hello?key=secret-key#part"
        _ = try await observed(exporter).get(url)
        await exporter.shutdown()
        let text = collector.texts.joined()
        #expect(text.contains("key=***"))
        for secret in ["pass-word", "secret-key", "kim"] { #expect(!text.contains(secret)) }
    }

    @Test func anyTagIsExportedUnchanged() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter {
            $0.serviceName = "the \"shop\""
            $0.resource = ["team": "a\\b\n"]
        }
        let agent = observed(exporter)
        let tags = [
            "", "\"quoted\"", "back\\slash / \n\t\u{1}\u{7F}", "ünïcode 🛶", String(repeating: "long", count: 5000),
        ]
        for tag in tags {
            var request = HTTPRequest(.get, service.baseURL + "/hello")
            request.tag = tag
            _ = try await agent.send(request)
        }
        await exporter.shutdown()
        let runs = try collector.spans.filter { $0.kind == 1 }
        #expect(runs.map(\.name) == tags && runs.map { $0["ferry.run.tag"] } == tags)
        let resource = try collector.documents("traces").first?["resourceSpans"]?[0]?["resource"]
        #expect(resource.flatMap { attributeValue("service.name", in: $0) } == "the \"shop\"")
        #expect(resource.flatMap { attributeValue("team", in: $0) } == "a\\b\n")
    }

    @Test func streamsAndCallbacksAreRunsToo() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        let exporter = collector.exporter()
        let agent = observed(exporter)
        let stream = try await agent.stream(HTTPRequest(.get, service.baseURL + "/bytes/100000"))
        for try await _ in stream.body {}
        await withCheckedContinuation { done in
            agent.start(HTTPRequest(.get, service.baseURL + "/hello")) { _ in done.resume() }
        }
        await agent.shutdown()
        await exporter.shutdown()
        let kinds = try collector.spans.map(\.kind)
        #expect(kinds == [1, 3, 1, 3])
    }

    @Test func anExporterThatIsLetGoExportsWhatItHas() async throws {
        let (collector, service) = (try Collector(), try LoopbackServer())
        do {
            let agent = observed(collector.exporter())
            _ = try await agent.get(service.baseURL + "/hello")
            await agent.shutdown()
        }
        try await collector.server.waitForRequests(2)
    }
}

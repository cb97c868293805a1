#if Tracing
import Ferry
import FerryTesting
import FerryTracing
import InMemoryTracing
import Testing
import Tracing

@Suite struct TracingTests {
    private func configuration(_ server: LoopbackServer, _ tracer: InMemoryTracer) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.observers = [TracingObserver(tracer: tracer)]
        return configuration
    }

    @Test func aRunIsASpanBelowTheCallersAndItsAttemptsAreBelowIt() async throws {
        let tracer = InMemoryTracer()
        let (fields, port) = try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in
                LoopbackResponse(status: 302, headers: ["Location": "/y"])
            }
            server.handle("GET", "/y") { _ in LoopbackResponse(text: "fine") }
            try await withNetworkAgent(configuration: configuration(server, tracer)) { agent in
                try await tracer.withSpan("caller") { _ in _ = try await agent.get("/x") }
            }
            return (server.requests.map(\.headers), Int(server.port))
        }
        let spans = tracer.finishedSpans
        let caller = try #require(spans.first { $0.operationName == "caller" })
        let run = try #require(spans.first { $0.kind == .internal && $0.operationName == "GET" })
        let attempts = spans.filter { $0.kind == .client }
        #expect(run.traceID == caller.traceID)
        #expect(run.parentSpanID == caller.spanID)
        #expect(run.attributes.get("http.response.status_code") == .int64(200))
        #expect(run.status == nil)
        #expect(attempts.map(\.parentSpanID) == [run.spanID, run.spanID])
        #expect(attempts.map { $0.attributes.get("http.response.status_code") } == [.int64(302), .int64(200)])
        #expect(attempts.first?.attributes.get("server.address") == .string("127.0.0.1"))
        #expect(attempts.first?.attributes.get("server.port") == .int64(Int64(port)))
        #expect(attempts.last?.attributes.get("http.request.resend_count") == .int64(1))
        // The server received the attempt's own span.
        #expect(fields.map { $0[InMemoryTracer.spanIDKey] } == attempts.map(\.spanID))
        #expect(fields.map { $0[InMemoryTracer.traceIDKey] } == attempts.map(\.traceID))
        #expect(tracer.activeSpans.isEmpty)
    }

    @Test func aFailureIsAnErrorOfBothSpans() async throws {
        let tracer = InMemoryTracer()
        try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in LoopbackResponse(status: 500) }
            await withNetworkAgent(configuration: configuration(server, tracer)) { agent in
                _ = await #expect(throws: RequestError.self) { _ = try await agent.get("/x?key=secret") }
            }
        }
        let spans = tracer.finishedSpans
        #expect(spans.count == 2)
        for span in spans {
            #expect(span.status?.code == .error)
            #expect(span.attributes.get("error.type") != nil)
            #expect("\(span.attributes.get("url.full") as Any)".contains("key=***"))
        }
    }

    @Test func aRequestMayKeepItsTraceToItself() async throws {
        let tracer = InMemoryTracer()
        let fields = try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in LoopbackResponse() }
            try await withNetworkAgent(configuration: configuration(server, tracer)) { agent in
                var request = HTTPRequest(.get, "/x")
                request.propagatesTrace = false
                _ = try await agent.send(request)
            }
            return server.requests.map(\.headers)
        }
        #expect(fields.map { $0[InMemoryTracer.spanIDKey] } == [nil])
        #expect(tracer.finishedSpans.count == 2)
    }

    /// A run that is sent again without end must not open spans without end.
    @Test func aRunHasSpansForAsManyAttemptsAsFerryRecords() async throws {
        let tracer = InMemoryTracer()
        let fields = try await withLoopbackServer { server in
            server.handle("GET", "/x") { request in
                let number = Int(request.target.dropFirst("/x?".count)) ?? 0
                if number == 130 { return LoopbackResponse() }
                return LoopbackResponse(status: 302, headers: ["Location": "/x?\(number + 1)"])
            }
            try await withNetworkAgent(configuration: configuration(server, tracer)) { agent in
                var request = HTTPRequest(.get, "/x?0")
                request.redirectPolicy = .follow(upTo: 200)
                _ = try await agent.send(request)
            }
            return server.requests.map(\.headers)
        }
        let run = try #require(tracer.finishedSpans.first { $0.kind == .internal })
        let attempts = tracer.finishedSpans.filter { $0.kind == .client }
        let carried = attempts.map(\.spanID) + [run.spanID, run.spanID, run.spanID]
        #expect(attempts.count == 128 && tracer.activeSpans.isEmpty)
        #expect(fields.map { $0[InMemoryTracer.spanIDKey] ?? "" } == carried)
    }

    /// A tracer with W3C's format: an incoming traceparent is passed on as one.
    @Test func withoutAServiceContextTheTraceContextIsTheParent() async throws {
        let tracer = InMemoryTracer()
        try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in LoopbackResponse() }
            try await withNetworkAgent(configuration: configuration(server, tracer)) { agent in
                try await TraceContext.$current.withValue(TraceContext()) { _ = try await agent.get("/x") }
            }
        }
        let carrier = try #require(tracer.performedContextExtractions.first?.carrier as? [String: String])
        #expect(carrier["traceparent"]?.hasPrefix("00-") == true)
    }
}
#endif

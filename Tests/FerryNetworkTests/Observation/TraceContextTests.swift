import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The W3C's trace context: its fields, and how runs send them.
@Suite(.timeLimit(.minutes(1))) struct TraceContextTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    /// As swift-distributed-tracing makes the spans.
    private final class Numbered: RunTracer, SpanNumbering {
        func begin(_ name: () -> String, below parent: TraceContext?) -> RunSpan {
            RunSpan(TraceContext(), below: 0, isRecorded: false, numbering: self)
        }
        func begin(_ method: String) -> [(String, String)] {
            let context = "00-" + String(repeating: "1", count: 32) + "-2222222222222222-01"
            return [("traceparent", context), ("tracestate", "o=1")]
        }
        func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ totals: RunTotals) {}
    }

    @Test(arguments: [true, false]) func aTracersStateBelongsToItsOwnContext(hasOwn: Bool) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.observers = [Numbered()]
        let agent = NetworkAgent(configuration: configuration)
        var request = HTTPRequest(.get, "/hello")
        if hasOwn { request.headers["traceparent"] = Self.parent }
        try await agent.send(request)
        let sent = try #require(server.requests.last?.headers)
        #expect(sent["tracestate"] == (hasOwn ? nil : "o=1") && (sent["traceparent"] == Self.parent) == hasOwn)
        await agent.shutdown()
    }

    // MARK: The fields

    @Test func theFieldIsReadAndWritten() throws {
        let context = try #require(
            TraceContext(traceparent: Self.parent, tracestate: "rojo=00f067aa0ba902b7, congo=t61"))
        #expect(context.traceparent == Self.parent)
        #expect(context.traceID.description == "0af7651916cd43dd8448eb211c80319c")
        #expect(context.spanID == 0xb7ad_6b71_6920_3331)
        #expect(context.isSampled)
        #expect(context.state == "rojo=00f067aa0ba902b7, congo=t61")
        let unsampled = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"))
        #expect(!unsampled.isSampled)
        #expect(unsampled.state == "")
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", parent + "-", parent + "-x", parent + "0",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    ]) func whatIsNotValidIsNone(text: String) { #expect(TraceContext(traceparent: text) == nil) }

    @Test func aLaterVersionIsReadAsFarAsItIsKnown() throws {
        for text in [
            Self.parent.replacingVersion("cc"), Self.parent.replacingVersion("01") + "-what-the-future-brings",
        ] {
            let context = try #require(TraceContext(traceparent: text))
            #expect(context.traceparent == Self.parent)
        }
        // Only the defined flag is passed on.
        #expect(TraceContext(traceparent: Self.parent.dropLast(2) + "ff")?.traceparent == Self.parent)
    }

    @Test(arguments: [
        "a", "a=1,b", "=1", String(repeating: "a=1,", count: 40), "a=" + String(repeating: "x", count: 511), "a=\u{7F}",
        "a=é", "", " , ",
    ]) func aStateThatIsNotValidIsDropped(state: String) throws {
        #expect(try #require(TraceContext(traceparent: Self.parent, tracestate: state)).state == "")
    }

    @Test func aChildHasTheTraceAndASpanOfItsOwn() throws {
        let context = TraceContext()
        let child = context.child()
        #expect(child.traceID == context.traceID)
        #expect(child.spanID != context.spanID)
        #expect(TraceContext(traceparent: child.traceparent) == child)
        #expect(TraceContext().traceID != context.traceID)
        #expect(Set((0..<10_000).map { _ in context.child().spanID }).count == 10_000)
    }

    @Test func idsOfNewTracesAreDifferentAndNotZero() {
        let contexts = (0..<10_000).map { _ in TraceContext.begin(sampling: 1) }
        #expect(Set(contexts.map(\.traceID)).count == 10_000)
        #expect(Set(contexts.map(\.spanID)).count == 10_000)
        #expect(contexts.allSatisfy { TraceContext(traceparent: $0.traceparent) == $0 })
    }

    /// Otherwise an id would have 64 random bits, and two services would soon have the same.
    @Test func halfATraceIDDoesNotTellTheOther() throws {
        let step: UInt64 = 0x9E37_79B9_7F4A_7C15
        let near = Set((UInt64(0)..<1000).flatMap { [step &* $0, 0 &- step &* $0] })
        for _ in 0..<100 {
            let id = TraceContext.begin(sampling: 1).traceID.description
            let high = try #require(UInt64(id.prefix(16), radix: 16))
            let low = try #require(UInt64(id.suffix(16), radix: 16))
            let distance = Self.position(of: high) &- Self.position(of: low)
            #expect(!near.contains(distance))
        }
    }

    /// Where the counter of ids was: SplitMix64 the other way round.
    private static func position(of id: UInt64) -> UInt64 {
        var number = id
        number = (number ^ number >> 31 ^ number >> 62) &* 0x3196_42B2_D24D_8EC3
        number = (number ^ number >> 27 ^ number >> 54) &* 0x96DE_1B17_3F11_9089
        return number ^ number >> 30 ^ number >> 60
    }

    // MARK: Runs

    private func agent(
        _ stub: StubTransport, _ configure: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configure(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    private func sent(_ stub: StubTransport) -> [TraceContext?] {
        stub.requests.map { TraceContext(traceparent: $0.headers["traceparent"], tracestate: $0.headers["tracestate"]) }
    }

    private struct Adding: RequestAdapter {
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            #expect(request.headers["traceparent"] == nil)
            request.headers["X-Added"] = "1"
        }
    }

    @Test(arguments: [false, true]) func everyWayToStartSendsAChildOfTheContextAtHand(adapted: Bool) async throws {
        let context = try #require(TraceContext(traceparent: Self.parent, tracestate: "a=1"))
        let stub = StubTransport(always: .response())
        let agent = agent(stub) { if adapted { $0.adapters = [Adding()] } }
        try await TraceContext.$current.withValue(context) {
            try await agent.send(Get())
            let outcome = Outcome<Response>()
            agent.start(Get(), completion: outcome.take)
            #expect(await outcome.code == nil)
            _ = try await agent.stream(Get())
            _ = try await agent.send(BatchRequest([Get("/b")]))
        }
        try await agent.send(Get())
        let sent = sent(stub)
        #expect(sent.count == 5)
        #expect(sent.last == .some(nil))
        let spans = sent.compactMap { $0 }
        #expect(spans.count == 4)
        #expect(spans.allSatisfy { $0.traceID == context.traceID && $0.state == "a=1" })
        #expect(Set(spans.map(\.spanID)).union([context.spanID]).count == 5)
    }

    @Test func eachAttemptHasASpanOfItsOwn() async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", uses: 2, [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serve])
        server.handle("/x") { _ in LoopbackResponse(text: "") }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
        let agent = NetworkAgent(configuration: configuration)
        let context = TraceContext()
        try await TraceContext.$current.withValue(context) { _ = try await agent.send(Get()) }
        let spans = server.requests.compactMap { TraceContext(traceparent: $0.headers["traceparent"]) }
        #expect(spans.count == 3)
        #expect(Set(spans.map(\.spanID)).count == 3)
        #expect(spans.allSatisfy { $0.traceID == context.traceID })
        // One field in each.
        #expect(server.requests.allSatisfy { $0.headers.values(of: "traceparent").count == 1 })
        await agent.shutdown()
    }

    @Test(arguments: [false, true]) func anotherOriginGetsItOnlyWhereThePolicySaysSo(keeps: Bool) async throws {
        let (server, other) = (try LoopbackServer(), try LoopbackServer())
        let target = other.baseURL + "/hello"
        server.handle("/away") { _ in LoopbackResponse(status: 302, headers: ["Location": target]) }
        server.handle("/here") { _ in LoopbackResponse(status: 302, headers: ["Location": "/hello"]) }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.redirectPolicy.keepsTraceContext = keeps
        let agent = NetworkAgent(configuration: configuration)
        try await TraceContext.$current.withValue(TraceContext()) {
            _ = try await agent.send(Get("/away"))
            _ = try await agent.send(Get("/here"))
        }
        #expect(server.requests.allSatisfy { $0.headers["traceparent"] != nil })
        #expect(server.requestCount == 3)
        #expect(other.requests.map { $0.headers["traceparent"] != nil } == [keeps])
        await agent.shutdown()
    }

    private struct Tracing: RequestAdapter {
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.headers["traceparent"] = "adapter's"
        }
    }

    @Test func whatAnAdapterOrTheConfigurationHasSetIsNotSentTwice() async throws {
        let stub = StubTransport(always: .response())
        let context = try #require(TraceContext(traceparent: Self.parent, tracestate: "a=1"))
        try await TraceContext.$current.withValue(context) {
            try await agent(stub) { $0.adapters = [Tracing()] }.send(Get())
            try await agent(stub) { $0.headers["traceparent"] = "configuration's" }.send(Get())
            try await agent(stub).send(HTTPRequest(.get, "/x", headers: ["tracestate": "b=2"]))
        }
        let parents = stub.requests.map { $0.headers.values(of: "traceparent") }
        #expect(parents.prefix(2) == [["adapter's"], ["configuration's"]])
        #expect(parents.last?.count == 1)
        #expect(stub.requests.map { $0.headers.values(of: "tracestate") } == [[], [], ["b=2"]])
    }

    @Test func theStepsOfAChainAndTheTransfersOfADownloadHaveItOnceEach() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let context = TraceContext()
        let folder = try Folder()
        var options = DownloadOptions(segments: 3)
        options.minimumSegmentSize = 1000
        try await TraceContext.$current.withValue(context) {
            _ = try await agent.send(ChainRequest(Get("/hello")).then { _ in Get("/hello") })
            _ = try await agent.download(Get("/bytes/3000000"), to: .file(folder.file("a")), options: options)
        }
        let fields = server.requests.map { $0.headers.values(of: "traceparent") }
        #expect(fields.count >= 3 && fields.allSatisfy { $0.count == 1 })
        #expect(Set(fields.joined()).count == fields.count)
        #expect(fields.joined().allSatisfy { TraceContext(traceparent: $0)?.traceID == context.traceID })
        await agent.shutdown()
    }

    @Test func aRequestMayOptOutOrSayItself() async throws {
        let stub = StubTransport(always: .response())
        let agent = agent(stub)
        try await TraceContext.$current.withValue(TraceContext()) {
            var request = HTTPRequest(.get, "/x")
            request.propagatesTrace = false
            try await agent.send(request)
            request.propagatesTrace = true
            request.headers["Traceparent"] = "mine"
            try await agent.send(request)
        }
        #expect(stub.requests.map { $0.headers["traceparent"] } == [nil, "mine"])
    }
}

extension String {
    fileprivate func replacingVersion(_ version: String) -> String { version + dropFirst(2) }
}

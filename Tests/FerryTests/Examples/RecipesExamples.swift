import Dispatch
import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryTestSupport

/// The code of the article "Recipes".
@Suite(.serialized, .timeLimit(.minutes(1))) struct RecipesExamples {
    // MARK: A body with dates

    struct Event: Codable, Sendable {
        let title: String
        let startsAt: Date
    }

    func create(_ event: Event, by agent: NetworkAgent) async throws(RequestError) -> Event {
        var encoder = FerryJSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.keyEncodingStrategy = .convertToSnakeCase
        var decoder = FerryJSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        var request = HTTPRequest(.post, "/events", body: .json(event, encoder: encoder), as: Event.self)
        request.jsonDecoder = decoder
        request.idempotencyKey = .automatic  // so that the request may be repeated
        request.retryPolicy = .exponential()
        return try await agent.send(request).value
    }

    @Test func aBodyHasDatesOfISO8601() async throws {
        try await withLoopbackServer { server in
            server.handle("/events") { LoopbackResponse(headers: ["Content-Type": "application/json"], body: $0.body) }
            try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
                let event = try await create(Event(title: "Tea", startsAt: Date(timeIntervalSince1970: 0)), by: agent)
                #expect(event.title == "Tea" && event.startsAt == Date(timeIntervalSince1970: 0))
            }
            let sent = try #require(server.requests.first)
            #expect(String(decoding: sent.body, as: UTF8.self).contains(#""starts_at":"1970-01-01T00:00:00Z""#))
            #expect(sent.headers["Idempotency-Key"] != nil)
        }
    }

    // MARK: Pages

    struct Page: Decodable, Sendable {
        let items: [String]
        let next: String?
    }

    struct ListPage: Request {
        typealias Value = Page
        let path: String
        var retryPolicy: RetryPolicy? { .exponential(maxAttempts: 3, baseDelay: .milliseconds(50)) }
        var cachePolicy: CachePolicy { .http() }  // as long as the server says
    }

    func items(_ path: String, by agent: NetworkAgent) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    var next: String? = path
                    while let path = next {
                        let page = try await agent.send(ListPage(path: path)).value
                        for item in page.items { continuation.yield(item) }
                        next = page.next
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    @Test func pagesAreRetriedAndCached() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/list", uses: 1,
                [.expectHead, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .close])
            let headers: LoopbackHeaders = ["Content-Type": "application/json", "Cache-Control": "max-age=60"]
            server.handle("/list") { _ in
                LoopbackResponse(headers: headers, text: #"{"items": ["a", "b"], "next": "/more"}"#)
            }
            server.handle("/more") { _ in LoopbackResponse(headers: headers, text: #"{"items": ["c"], "next": null}"#) }
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 1 << 20) }
            try await withNetworkAgent(configuration: configuration) { agent in
                for _ in 0..<2 {
                    var all: [String] = []
                    for try await item in items("/list", by: agent) { all.append(item) }
                    #expect(all == ["a", "b", "c"])
                }
            }
            #expect(server.requestCount == 3, "a failure, and each page once")
        }
    }

    // MARK: Server-sent events

    func follow(_ agent: NetworkAgent) async throws -> [String] {
        var seen: [String] = []
        for try await event in agent.events(HTTPRequest(.get, "/changes")) {
            seen.append(event.data)
            if event.event == "end" { break }  // leaving the loop ends the request
        }
        return seen
    }

    @Test func eventsAreFollowed() async throws {
        try await withLoopbackServer { server in
            server.handle("/changes") { _ in
                LoopbackResponse(
                    headers: ["Content-Type": "text/event-stream"], text: "data: one\n\nevent: end\ndata: two\n\n")
            }
            try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
                let seen = try await follow(agent)
                #expect(seen == ["one", "two"])
            }
        }
    }

    // MARK: Webhooks

    func webhookAgent() -> NetworkAgent {
        var configuration = NetworkConfiguration()
        configuration.addressPolicy = .publicOnly  // no loopback, no private network, checked at each connection
        configuration.redirectPolicy = .none
        configuration.retryPolicy = .exponential(maxAttempts: 5, maxDelay: .seconds(60))
        configuration.limits.transfersPerHost = 4
        configuration.limits.maxBodyBytes = 64 * 1024
        return NetworkAgent(configuration: configuration)
    }

    func deliver(_ payload: some Encodable & Sendable, to url: String, by agent: NetworkAgent) async -> Bool {
        var request = HTTPRequest(.post, url, body: .json(payload))
        request.idempotencyKey = .automatic  // the same in each attempt
        request.deadline = .seconds(120)
        do throws(RequestError) {
            try await agent.send(request)
            return true
        } catch {
            switch error.code {
            case .addressForbidden: print("not a public address: \(url)")
            case .invalidStatusCode: print("refused with \(error.response?.status ?? 0)")
            default: print(error)
            }
            return false
        }
    }

    @Test func aWebhookReachesNoPrivateAddress() async throws {
        let agent = webhookAgent()
        try await withLoopbackServer { server in
            #expect(await !deliver(["id": 7], to: server.baseURL + "/hook", by: agent))
            #expect(server.requestCount == 0)
        }
        await agent.shutdown()
    }

    // MARK: A service

    func serve(_ agent: NetworkAgent, _ work: @escaping @Sendable () async throws -> Void) async throws {
        signal(SIGTERM, SIG_IGN)
        let service = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await agent.run() }  // shuts the agent down when it is cancelled
                group.addTask { try await work() }
                defer { group.cancelAll() }  // also if the work ends by itself
                try await group.next()
            }
        }
        let source = DispatchSource.makeSignalSource(signal: SIGTERM)
        source.setEventHandler { service.cancel() }
        source.resume()
        defer { source.cancel() }
        do {
            try await service.value
        } catch {
            // SIGTERM is a normal end: work that was cancelled may throw.
            if !service.isCancelled { throw error }
        }
    }

    func serviceConfiguration(_ metrics: MetricsRecorder) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "http://orders.internal")
        configuration.limits.maxConcurrentTransfers = 256
        configuration.limits.queueLength = 1_000  // further requests fail with queueFull
        configuration.observers = [metrics]
        return configuration
    }

    @Test func aServiceEndsAtSIGTERM() async throws {
        defer {
            // A signal that is still pending would end the process.
            signal(SIGTERM, SIG_IGN)
            signal(SIGTERM, SIG_DFL)
        }
        let metrics = MetricsRecorder()
        let stub = StubTransport(always: .response(body: "hello"))
        let agent = NetworkAgent(configuration: serviceConfiguration(metrics), stub: stub)
        try await serve(agent) {
            _ = try await agent.get("/hello")
            while true {
                kill(getpid(), SIGTERM)
                // Without a pause the calls hold the process's lock for signals nearly all of the time.
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(metrics.prometheusText().contains("ferry_"))
        try await serve(NetworkAgent(configuration: .test, stub: stub)) {}
        await #expect(throws: RequestError.self) { try await agent.get("/hello") }
    }

    // MARK: Trace context

    func handle(_ incoming: Headers, by agent: NetworkAgent) async throws -> String {
        let context =
            TraceContext(traceparent: incoming["traceparent"], tracestate: incoming["tracestate"]) ?? TraceContext()
        return try await TraceContext.$current.withValue(context) {
            try await agent.get("/prices").text  // sends a child of the incoming span
        }
    }

    @Test func theTraceGoesOn() async throws {
        try await withLoopbackServer { server in
            server.handle("/prices") { LoopbackResponse(text: $0.headers["traceparent"] ?? "") }
            let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
            try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
                let sent = try await handle(["traceparent": "00-\(trace)-00f067aa0ba902b7-01"], by: agent)
                #expect(sent.contains(trace) && !sent.contains("00f067aa0ba902b7"))
            }
        }
    }

    // MARK: A Unix socket

    func dockerVersion() async throws -> String? {
        var configuration = NetworkConfiguration(baseURL: "http://docker")
        configuration.unixSocket = "/run/docker.sock"
        return try await withNetworkAgent(configuration: configuration) { agent in
            try await agent.get("/version", as: JSON.self)["Version"]?.string
        }
    }

    // MARK: Record and replay

    func record(_ configuration: NetworkConfiguration, to path: String) async throws {
        let recorder = Recorder()
        var configuration = configuration
        configuration.recorder = recorder
        try await withNetworkAgent(configuration: configuration) { agent in
            _ = try await agent.get("/users/7")
        }
        try recorder.archive.write(to: path)  // HAR 1.2, secrets redacted
    }

    func replay(_ configuration: NetworkConfiguration, from path: String) async throws -> String? {
        let stub = StubTransport(har: try HTTPArchive(contentsOf: path))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let user = try await agent.get("/users/7")
        await agent.shutdown()
        return user.text
    }

    @Test func whatWasRecordedIsReplayed() async throws {
        let path = NSTemporaryDirectory() + "ferry-recipe-\(UUID().uuidString).har"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withLoopbackServer { server in
            server.handle("/users/7") { _ in LoopbackResponse(text: "kim") }
            let configuration = NetworkConfiguration(baseURL: server.baseURL)
            try await record(configuration, to: path)
            #expect(try await replay(configuration, from: path) == "kim")
            #expect(server.requestCount == 1)
        }
    }
}

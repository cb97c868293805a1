import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Informational responses, reported when they arrive.
@Suite(.timeLimit(.minutes(1))) struct InformationalTests {
    private static let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nLink: </b.js>\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    /// Records what it is told, in order.
    private final class Watcher: RequestObserver {
        private let noted = Mutex<[(run: UInt64, text: String)]>([])
        private let signal: @Sendable () -> Void

        init(_ signal: @escaping @Sendable () -> Void = {}) { self.signal = signal }

        var notes: [String] { noted.withLock { $0.map { $0.text } } }

        /// The events of each run: the end of one may be reported after the start of the next.
        var byRun: [[String]] {
            let all = noted.withLock { $0 }
            return Dictionary(grouping: all) { $0.run }.values.map { run in run.map { $0.text } }
        }

        private func note(_ run: RunInfo, _ text: String) { noted.withLock { $0.append((run.id, text)) } }

        func willStart(_ run: RunInfo) { note(run, "start") }

        func informational(_ run: RunInfo, _ response: InformationalResponse) {
            note(run, "\(response.status) \(response.headers["Link"] ?? "")")
            signal()
        }

        func didStop(_ run: RunInfo, _ outcome: RunOutcome) { note(run, "\(outcome)") }
    }

    @Test func anObserverIsCalledBeforeTheResponseArrives() async throws {
        try await withExchanges { agent, server in
            // The response waits for what the observer does.
            server.script(path: "/x", [.send(Self.hint), .wait("told"), .send(Self.ok), .serve])
            let watcher = Watcher { server.signal("told") }
            var request = HTTPRequest(.get, "/x")
            request.observers = [watcher]
            let reply = try await agent.send(request)
            #expect(reply.text == "hi")
            #expect(watcher.notes == ["start", "103 </a.css>, </b.js>", "finished 200"])
        }
    }

    /// The second run is a single transfer that validates the response in memory.
    @Test func aValidationReportsInformationalResponses() async throws {
        let folder = CacheBench()
        let watcher = Watcher()
        try await withExchanges({
            $0.observers = [watcher]
            $0.cache = CacheConfiguration(directory: folder.path)
        }) { agent, server in
            let fields = "ETag: \"a\"\r\nCache-Control: no-cache\r\n"
            let ok = "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 2\r\n\r\nhi"
            server.script(path: "/x", uses: 1, [.expectHead, .send(Self.hint + ok), .serve])
            let same = "HTTP/1.1 304 Not Modified\r\n\(fields)\r\n"
            server.script(path: "/x", [.expectHead, .send(Self.hint + same), .serve])
            var request = Kept(cachePolicy: .http())
            request.path = "/x"
            for _ in 0..<3 {
                let reply = try await agent.send(request)
                #expect(reply.value == "hi")
            }
            #expect(server.requests.last?.headers["If-None-Match"] == "\"a\"")
            #expect(watcher.byRun.count == 3)
            for run in watcher.byRun { #expect(run == ["start", "103 </a.css>, </b.js>", "finished 200"]) }
        }
    }

    @Test func runsOfEveryKindReportInformationalResponses() async throws {
        let watcher = Watcher()
        try await withExchanges({
            $0.observers = [watcher]
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1))
        }) { agent, server in
            server.script(path: "/x", [.send(Self.hint + "HTTP/1.1 102 Processing\r\n\r\n" + Self.ok), .serve])
            let told = ["start", "103 </a.css>, </b.js>", "102 "]
            let outcome = Outcome<Response>()
            agent.start(Get("/x"), completion: outcome.take)
            _ = await outcome.result
            _ = try await agent.stream(Get("/x")).body.collect(upTo: 10)
            try await agent.exchange(HTTPRequest(.get, "/x")) { response, _ in _ = try await response.head }
            _ = try await agent.send(batch: [Get("/x")])
            // The batch itself has only a start and an end.
            let runs = watcher.byRun.filter { $0.count > 2 }
            #expect(runs.count == 4)
            for run in runs { #expect(run.prefix(3) == told[...]) }
            // Each attempt brings its own.
            server.script(
                path: "/busy", uses: 1, [.send(Self.hint + "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), .serve])
            server.script(path: "/busy", [.send(Self.hint + Self.ok), .serve])
            let before = watcher.notes.count
            _ = try await agent.send(Get("/busy"))
            #expect(watcher.notes.dropFirst(before).filter { $0.hasPrefix("103") }.count == 2)
        }
    }

    @Test func aStreamReportsInformationalResponsesToAClosure() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.send(Self.hint), .wait("told"), .send(Self.ok), .serve])
            let statuses = Mutex<[Int]>([])
            let response = try await agent.stream(Get("/x")) { informational in
                statuses.withLock { $0.append(informational.status) }
                server.signal("told")
            }
            #expect(statuses.withLock { $0 } == [103])
            #expect(response.head.informational.map(\.status) == [103])
            #expect(try await response.body.collect(upTo: 2).count == 2)
        }
    }

    @Test func anExchangeReportsInformationalResponsesWhileItsBodyIsWritten() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.send(Self.hint), .expectBody, .send(Self.ok), .serve])
            let (hints, hint) = AsyncStream<Int>.makeStream()
            try await agent.exchange(
                HTTPRequest(.post, "/x"), onInformational: { hint.yield($0.status) }
            ) { response, body in
                try await body.write([1, 2, 3])
                var iterator = hints.makeAsyncIterator()
                #expect(await iterator.next() == 103)
                try body.finish()
                #expect(try await response.head.status == 200)
            }
        }
    }

    // MARK: Hostile servers

    @Test func aFloodOfInformationalResponsesIsReportedUpToTheLimit() async throws {
        let watcher = Watcher()
        try await withExchanges({ $0.observers = [watcher] }) { agent, server in
            server.script(path: "/x", [.repeating(Self.hint, times: 100_000), .send(Self.ok)])
            let code = await code { () throws(RequestError) in try await agent.send(Get("/x")) }
            #expect(code == .headersTooLarge(.informational))
            #expect(watcher.notes.filter { $0.hasPrefix("103") }.count == 32)
        }
    }

    @Test func tooLargeInformationalResponsesAreAnError() async throws {
        let watcher = Watcher()
        try await withExchanges({ $0.observers = [watcher] }) { agent, server in
            let large = "HTTP/1.1 103 Early Hints\r\nLink: " + String(repeating: "a", count: 60_000) + "\r\n\r\n"
            server.script(path: "/x", [.send(large), .send(large), .send(Self.ok)])
            let code = await code { () throws(RequestError) in try await agent.send(Get("/x")) }
            #expect(code == .headersTooLarge(.bytes))
            #expect(watcher.notes.filter { $0.hasPrefix("103") }.count == 1)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 103 Early\r\nno colon\r\n\r\n", "HTTP/1.1 103 Early\r\nX: a\u{0}b\r\n\r\n", "HTTP/1.1 103\n\n",
        "HTTP/1.1 103 Early\r\nX: 1\r\n",
    ]) func brokenInformationalResponsesAreNotReported(head: String) async throws {
        let watcher = Watcher()
        try await withExchanges({ $0.observers = [watcher] }) { agent, server in
            server.script(path: "/x", [.send(head), .close])
            let code = await code { () throws(RequestError) in try await agent.send(Get("/x")) }
            #expect(code != nil)
            #expect(!watcher.notes.contains { $0.hasPrefix("103") })
        }
    }
}

import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A clock that the test advances.
private final class ManualClock: Sendable {
    private let instant = Mutex(ContinuousClock.now)

    var now: ContinuousClock.Instant { instant.withLock { $0 } }
    func advance(by duration: Duration) { instant.withLock { $0 += duration } }
}

@Suite(.timeLimit(.minutes(2))) struct HostHealthTests {
    private let clock = ManualClock()

    private func table(capacity: Int = 1024) -> HostHealthTable {
        HostHealthTable(capacity: capacity) { [clock] in clock.now }
    }

    private func error(_ code: RequestError.Code, _ phase: RequestPhase = .body) -> RequestError {
        RequestError(code, phase: phase)
    }

    @Test func aHostIsUnknownThenReachableThenFailingAndBack() {
        let table = table()
        let start = clock.now
        #expect(table.health(of: "http://h/x") == .unknown)
        table.succeeded("http://h/x")
        #expect(table.health(of: "http://h/other?q=1") == .reachable(since: start))
        clock.advance(by: .seconds(1))
        table.succeeded("http://h/y")
        #expect(table.health(of: "http://h") == .reachable(since: start))
        table.failed("http://h/y", error(.connect(.refused), .connect))
        clock.advance(by: .seconds(1))
        table.failed("http://h/y", error(.timeout(.connect), .connect))
        #expect(
            table.health(of: "http://h")
                == .failing(since: start + .seconds(1), consecutiveFailures: 2, lastError: .timeout(.connect)))
        table.succeeded("http://h/x")
        #expect(table.health(of: "http://h") == .reachable(since: start + .seconds(2)))
        table.failed("http://h/y", error(.connectionReset))
        #expect(
            table.health(of: "http://h")
                == .failing(since: start + .seconds(2), consecutiveFailures: 1, lastError: .connectionReset))
    }

    @Test func schemePortAndNameTellHostsApartAndSpellingsDoNot() {
        let table = table()
        table.succeeded("http://h/x")
        table.failed("http://h:8080/x", error(.connectionReset))
        table.failed("https://h/x", error(.tls(.expired), .tls))
        #expect(table.health(of: "http://h").isReachable)
        #expect(table.health(of: "http://h:8080").isFailing)
        #expect(table.health(of: "https://h").isFailing)
        #expect(table.health(of: "http://other") == .unknown)
        for spelling in ["http://kim:canary@H:80/x", "HTTP://h", "http://h:"] {
            table.failed(spelling, error(.dns(.notFound), .dns))
            #expect(table.health(of: "http://h").isFailing)
            table.succeeded("http://h/x")
            #expect(table.health(of: spelling).isReachable)
        }
        #expect(table.all.keys.sorted() == ["http://h", "http://h:8080", "https://h"])
        #expect(table.all["https://h"]?.isFailing == true)
    }

    /// The shortcut for one spelling must not hide a failure of another.
    @Test func aFailureEndsTheShortcutOfEverySpelling() {
        let table = table()
        let spellings = ["http://h", "http://H", "http://h:80", "HTTP://h"]
        for spelling in spellings { table.succeeded(spelling + "/x") }
        for failing in spellings {
            for spelling in spellings {
                table.failed(failing, error(.connectionReset))
                #expect(table.health(of: "http://h").isFailing)
                table.succeeded(spelling + "/x")
                #expect(table.health(of: "http://h").isReachable)
            }
        }
    }

    @Test func aHostOfCountlessSpellingsIsStillRight() {
        let table = table()
        for number in 0..<100 {
            let spelling = "http://user\(number)@h/x"
            table.succeeded(spelling)
            table.failed("http://h", error(.connectionReset))
            #expect(table.health(of: spelling).isFailing)
            table.succeeded(spelling)
            #expect(table.health(of: spelling).isReachable)
        }
        #expect(table.all.count == 1)
    }

    @Test(arguments: [
        (RequestError.Code.connect(.refused), RequestPhase.connect, HostVerdict.failed),
        (.dns(.temporary), .dns, .failed), (.tls(.handshake), .tls, .failed), (.tls(.configuration), .tls, .nothing),
        (.timeout(.connect), .connect, .failed), (.timeout(.responseHead), .waitingHead, .failed),
        (.timeout(.queue), .queued, .nothing), (.timeout(.deadline), .queued, .nothing),
        (.timeout(.deadline), .body, .failed), (.connectionReset, .body, .failed),
        (.connectionClosed, .waitingHead, .failed), (.incompleteBody, .body, .failed),
        (.invalidStatusCode(503), .processing, .answered), (.decoding, .processing, .answered),
        (.applicationError, .processing, .answered), (.malformedResponse(.chunk), .body, .answered),
        (.responseTooLarge, .body, .answered), (.tooManyRedirects, .head, .answered),
        (.cancelled, .body, .nothing), (.cancelled, .processing, .nothing), (.shutdown, .body, .nothing),
        (.queueFull, .preparing, .nothing), (.invalidURL, .preparing, .nothing), (.fileIO, .body, .nothing),
        (.uploadSource, .send, .nothing), (.addressForbidden, .connect, .nothing), (.proxy, .connect, .nothing),
    ])
    func whatAnErrorSaysOfAHost(_ code: RequestError.Code, _ phase: RequestPhase, _ verdict: HostVerdict) {
        #expect(HostVerdict(error(code, phase)) == verdict)
    }

    @Test func whatSaysNothingChangesNothing() {
        let table = table()
        table.failed("http://h", error(.cancelled))
        #expect(table.health(of: "http://h") == .unknown && table.all.isEmpty)
        table.failed("http://h", error(.invalidStatusCode(500), .processing))
        #expect(table.health(of: "http://h").isReachable)
    }

    @Test(arguments: ["", "x", "/x", "http://", "http:///", "http://@", "http://:80", "h:80", "mailto:x", "x:/h"])
    func whatHasNoHostIsUnknown(_ text: String) {
        let table = table()
        for _ in 0..<2 {
            table.succeeded(text)
            table.failed(text, error(.connectionReset))
        }
        #expect(table.health(of: text) == .unknown && table.all.isEmpty)
    }

    @Test func theLeastRecentlyUsedHostsGo() {
        let table = table(capacity: 64)
        for number in 0..<64 { table.succeeded("http://h\(number)/") }
        // A use that changes nothing counts, too, so that a sweep finds it.
        for _ in 0..<3 {
            for number in 0..<200 {
                table.succeeded("http://h0/")
                table.succeeded("http://new\(number)/")
                #expect(table.all.count <= 64)
            }
        }
        #expect(table.health(of: "http://h0").isReachable)
        #expect(table.health(of: "http://h1") == .unknown)
        #expect(table.health(of: "http://new199").isReachable)
    }

    @Test func aHostThatWasDroppedIsLearntAnew() {
        let table = table(capacity: 8)
        for number in 0..<100 { table.succeeded("http://h\(number)/") }
        #expect(table.health(of: "http://h0") == .unknown)
        table.succeeded("http://h0/")
        #expect(table.health(of: "http://h0").isReachable)
    }

    @Test func changesAreToldOnceEachAndInOrder() async {
        let table = table()
        let start = clock.now
        var changes = table.changes.makeAsyncIterator()
        var others = table.changes.makeAsyncIterator()
        table.succeeded("http://h/1")
        table.succeeded("http://h/2")
        table.failed("http://h/3", error(.connectionReset))
        table.failed("http://h/4", error(.connectionReset))
        table.failed("http://h/5", error(.cancelled))
        table.succeeded("http://h/6")
        let expected: [HostHealthChange] = [
            .init(host: "http://h", health: .reachable(since: start)),
            .init(
                host: "http://h",
                health: .failing(since: start, consecutiveFailures: 1, lastError: .connectionReset)),
            .init(host: "http://h", health: .reachable(since: start)),
        ]
        for change in expected {
            #expect(await changes.next() == change)
            #expect(await others.next() == change)
        }
    }

    @Test func anIterationEndsWithItsTask() async {
        let table = table()
        let task = Task {
            var count = 0
            for await _ in table.changes { count += 1 }
            return count
        }
        task.cancel()
        #expect(await task.value == 0)
        table.succeeded("http://h/")
        #expect(table.health(of: "http://h").isReachable)
    }

    @Test func aListenerThatIsGoneIsForgotten() async {
        weak var weakTable: HostHealthTable?
        do {
            let table = table()
            weakTable = table
            do {
                var iterator = table.changes.makeAsyncIterator()
                table.failed("http://h/", error(.connectionReset))
                _ = await iterator.next()
                #expect(table.listenerCount == 1)
            }
            #expect(table.listenerCount == 0)
        }
        #expect(weakTable == nil)
    }

    @Test func anIterationEndsWithTheTable() async {
        var changes: HostHealthChanges.AsyncIterator
        do {
            let table = table()
            changes = table.changes.makeAsyncIterator()
            table.succeeded("http://h/")
        }
        #expect(await changes.next()?.host == "http://h")
        #expect(await changes.next() == nil)
    }

    @Test func anIterationEndsWithTheAgentAlsoIfTheSequenceIsKept() async throws {
        var agent: NetworkAgent? = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let kept = try #require(agent?.hostHealthChanges)
        var changes = kept.makeAsyncIterator()
        _ = try await agent?.send(Get())
        #expect(await changes.next()?.host == "http://h")
        agent = nil
        #expect(await changes.next() == nil)
        var late = kept.makeAsyncIterator()
        #expect(await late.next() == nil)
    }

    @Test func threadsThatRacePutNothingOutOfOrder() async {
        let table = table(capacity: 16)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for number in 0..<3_000 {
                        let url = "http://h\((number + task) % 24)/"
                        if number % 7 == task { table.failed(url, RequestError(.connectionReset, phase: .body)) }
                        table.succeeded(url)
                    }
                }
            }
        }
        #expect(table.all.count <= 16)
        for number in 0..<24 {
            let url = "http://h\(number)/"
            table.failed(url, error(.connectionReset))
            #expect(table.health(of: url).isFailing, "no shortcut hides a failure")
            table.succeeded(url)
            #expect(table.health(of: url).isReachable, "no shortcut hides a success")
        }
    }
}

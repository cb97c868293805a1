import FerryCache
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// An action at the nth pass from now.
private final class Interruption: Sendable {
    private let left = Atomic<Int>(0)
    private let action = Mutex<(@Sendable () -> Void)?>(nil)

    func set(at pass: Int, _ action: @escaping @Sendable () -> Void) {
        self.action.withLock { $0 = action }
        left.store(pass, ordering: .sequentiallyConsistent)
    }

    func pass() {
        guard left.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 else { return }
        // Once: it may hold what holds this object.
        action.withLock { $0.take() }?()
    }
}

/// Validations by one transfer: they have the same result as an exchange, and withstand what other runs do meanwhile.
@Suite(.timeLimit(.minutes(1))) struct PlainValidationTests {
    private let bench = CacheBench()

    private func date(_ bench: CacheBench) -> String { HTTPDate(secondsSince1970: bench.now).description }

    /// With `Date`, like a server's.
    private func dated(_ more: Headers = Headers()) -> Headers {
        var headers: Headers = ["Date": date(bench), "ETag": "\"a\"", "Cache-Control": "max-age=60"]
        for field in more { headers[field.name] = field.value }
        return headers
    }

    /// What a 304 may say beyond the date.
    private static let answers: [Headers] = [
        [:], ["X-New": "1"], ["Cache-Control": "max-age=10"], ["Cache-Control": "no-store"], ["Age": "7"],
        ["Vary": "Accept"], ["ETag": "W/\"a\""], ["ETag": "\"b\""], ["Expires": "0"], ["Set-Cookie": "a=b"],
        ["Connection": "X-Kept"], ["Cache-Control": "no-cache=\"x-kept\""], ["Date": "never"], ["Vary": "*"],
    ]

    /// Started runs use an exchange.
    @Test(arguments: answers.indices, ["max-age=60", "no-cache", "max-age=5, stale-if-error=60"])
    func theFastPathHasTheSameResultAsAnExchange(index: Int, control: String) async throws {
        var seen: [String] = []
        for isPlain in [true, false] {
            let bench = CacheBench()
            let stub = StubTransport { request in
                var headers: Headers = [
                    "Date": date(bench), "ETag": "\"a\"", "Cache-Control": control, "X-Kept": "1",
                ]
                if request.headers["If-None-Match"] == nil {
                    return .response(headers: headers, body: "answer \(request.number)")
                }
                for field in Self.answers[index] { headers[field.name] = field.value }
                return .response(status: 304, headers: headers)
            }
            let agent = bench.agent(stub)
            var texts: [String] = []
            for _ in 0..<4 {
                bench.advance(by: .seconds(61))
                let reply: Reply<String>
                if isPlain {
                    reply = try await agent.send(http())
                } else {
                    let outcome = Outcome<String>()
                    agent.start(http(), completion: outcome.take)
                    reply = try await outcome.result.get()
                }
                let base = bench.now
                let fields = reply.headers.map { field in
                    let moved = HTTPDate(field.value, now: HTTPDate(secondsSince1970: base)).map {
                        "\($0.secondsSince1970 - base)"
                    }
                    return "\(field.name): \(moved ?? field.value)"
                }
                texts.append(
                    "\(reply.status) \(reply.value) \(reply.cacheStatus?.description ?? "") \(fields.sorted())")
            }
            texts += stub.requests.map { "\($0.headers.sorted { $0.name < $1.name }.map(\.name))" }
            await agent.shutdown()
            seen.append(texts.joined(separator: "\n"))
        }
        #expect(seen[0] == seen[1])
    }

    @Test func theDateIsRenewedAndTheBodyIsShared() async throws {
        let stub = StubTransport { request in
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let agent = bench.agent(stub)
        var addresses: Set<UnsafeRawPointer?> = []
        for round in 0..<4 {
            let reply = try await agent.send(http())
            #expect(reply.value == "answer" && reply.headers["Date"] == date(bench))
            #expect(reply.cacheStatus?.forwardStatus == (round == 0 ? nil : 304))
            let hit = try await agent.send(http())
            #expect(hit.isFromCache && hit.headers["Date"] == date(bench) && hit.headers["Age"] == "0")
            hit.response.withBytes { _ = addresses.insert($0.baseAddress) }
            bench.advance(by: .seconds(60))
        }
        #expect(addresses.count == 1 && stub.requests.count == 4)
        #expect(await agent.cache.statistics.validations == 3)
        await agent.shutdown()
    }

    @Test func aResponseByItsLastModifiedDateStaysFreshByItsNewAge() async throws {
        let modified = HTTPDate(secondsSince1970: bench.now - 1000).description
        let stub = StubTransport { request in
            let headers: Headers = ["Date": date(bench), "Last-Modified": modified]
            let isFirst = request.headers["If-Modified-Since"] == nil
            return .response(status: isFirst ? 200 : 304, headers: headers, body: isFirst ? "answer" : "")
        }
        let agent = bench.agent(stub)
        #expect(try await agent.send(http()).cacheStatus?.ttl == .seconds(100))
        bench.advance(by: .seconds(1000))
        let renewed = try await agent.send(http())
        #expect(renewed.cacheStatus?.description == "Ferry; fwd=stale; fwd-status=304; stored; ttl=200")
        bench.advance(by: .seconds(150))
        #expect(try await agent.send(http()).isFromCache)
        await agent.shutdown()
    }

    /// Of many validations within a second, one is stored: the others differ only by a fraction of a second.
    @Test func a304WithTheSameDateLeavesTheStoredResponseAsItIs() async throws {
        let stub = StubTransport { request in
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let agent = bench.agent(stub)
        let pressed = http(["Cache-Control": "no-cache"])
        let cache = try #require(agent.core.cache)
        let key = try self.key(of: pressed, by: agent)
        bench.startSecond()
        _ = try await agent.send(pressed)
        let first = try #require(cache.recallEntry(key))
        bench.advance(by: .milliseconds(900))
        let confirmed = try await agent.send(pressed)
        #expect(confirmed.value == "answer" && confirmed.cacheStatus?.forwardStatus == 304)
        #expect(confirmed.cacheStatus?.isStored == true && cache.recallEntry(key) === first)
        bench.advance(by: .milliseconds(100))
        #expect(try await agent.send(pressed).headers["Date"] == date(bench))
        #expect(cache.recallEntry(key) !== first)
        #expect(await agent.cache.statistics.validations == 2)
        await agent.shutdown()
    }

    /// A member may return another value each time. The lookup and the transfer use the same one.
    @Test func aValidationReadsPathAndHeadersOnce() async throws {
        let stub = StubTransport { request in
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let (agent, request) = (bench.agent(stub), Counting())
        _ = try await agent.send(request)
        bench.advance(by: .seconds(61))
        let before = request.reads.counts
        let reply = try await agent.send(request)
        #expect(reply.value == "answer" && reply.cacheStatus?.forwardStatus == 304)
        #expect(request.reads.counts == [before[0] + 1, before[1] + 1])
        #expect(stub.requests.last?.headers["X-Number"] == String(request.reads.counts[1]))
        await agent.shutdown()
    }

    /// Counts how often its members are read.
    private struct Counting: Request {
        final class Reads: Sendable {
            private let both = Mutex([0, 0])
            var counts: [Int] { both.withLock { $0 } }

            func next(_ index: Int) -> Int {
                both.withLock { counts in
                    counts[index] += 1
                    return counts[index]
                }
            }
        }

        typealias Value = String
        let reads = Reads()
        var path: String {
            _ = reads.next(0)
            return "/counted"
        }
        var headers: Headers { ["X-Number": String(reads.next(1))] }
        var cachePolicy: CachePolicy { .http() }
    }

    private func key(of request: Kept, by agent: NetworkAgent) throws -> CacheKey {
        let (cache, terms) = (try #require(agent.core.cache), try #require(request.cachePolicy.http))
        let target = try agent.core.httpTarget(of: request, terms, at: agent.core.builder.servers, in: cache)
        return try #require(target.key)
    }

    // MARK: What comes between

    /// A run reads the clock between its lookup and its decision to validate. At that moment, another run has just
    /// ended its validation.
    @Test(arguments: [(true, 1), (true, 2), (false, 1), (false, 2), (false, 3)])
    func aValidationThatEndsBetweenLookupAndDecisionIsNotRepeated(isPlain: Bool, reading: Int) async throws {
        let stub = StubTransport { request in
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let interruption = Interruption()
        let agent = bench.agent(stub) { configuration in
            configuration.cache?.clock = { [bench] in
                interruption.pass()
                return bench.now * 1_000_000
            }
        }
        _ = try await agent.send(http())
        bench.advance(by: .seconds(60))
        _ = try await agent.send(http())
        let cache = try #require(agent.core.cache)
        let key = try self.key(of: http(), by: agent)
        let renewed = try #require(cache.recallEntry(key)?.variants)
        let stale = StoredVariants(
            renewed.all.map { old in
                StoredVariant(
                    old.result, StoredVariant.Times(request: 1, response: 1, initialAge: 0), isHead: false,
                    isDecoded: false, varying: [], variance: old.variance, isShared: false)
            }, stored: renewed.marks.stored)
        cache.keep(stale, under: key, nil)
        interruption.set(at: reading) { cache.keep(renewed, under: key, nil) }
        let reply = isPlain ? try await agent.send(http()) : try await started(http(), by: agent)
        #expect(reply.value == "answer" && reply.isFromCache && stub.requests.count == 2)
        await agent.shutdown()
    }

    /// The server has changed meanwhile, and another run has its new response already.
    @Test(arguments: [true, false]) func anOlder304DoesNotReplaceANewerResponse(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1: .response(headers: dated(), body: "answer 1")
            case 2: .hold
            default: .response(headers: dated(["ETag": "\"b\""]), body: "answer \(request.number)")
            }
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(1))
        let pressed = http(["Cache-Control": "no-cache"])
        async let slow = isPlain ? agent.send(pressed) : started(pressed, by: agent)
        await stub.waitForHeld(1)
        #expect(try await agent.send(pressed).value == "answer 3")
        stub.releaseAll(with: .response(status: 304, headers: dated()))
        #expect(try await slow.value == "answer 1")
        #expect(try await slow.cacheStatus?.isStored == false)
        #expect(try await agent.send(http()).value == "answer 3")
        #expect(stub.requests.count == 3)
        await agent.shutdown()
    }

    @Test func anOlderResponseDoesNotReplaceANewerOne() async throws {
        let stub = StubTransport { request in
            request.number == 1 ? .hold : .response(headers: dated(), body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        async let slow = agent.send(http(mode: .reload))
        await stub.waitForHeld(1)
        bench.advance(by: .seconds(1))
        #expect(try await agent.send(http(mode: .reload)).cacheStatus?.isStored == true)
        stub.releaseAll(with: .response(headers: dated(), body: "answer 1"))
        #expect(try await slow.value == "answer 1")
        #expect(try await slow.cacheStatus?.isStored == false)
        #expect(try await agent.send(http()).value == "answer 2")
        await agent.shutdown()
    }

    private func started(_ request: Kept, by agent: NetworkAgent) async throws -> Reply<String> {
        let outcome = Outcome<String>()
        agent.start(request, completion: outcome.take)
        return try await outcome.result.get()
    }

    /// The other runs wait for its validation.
    @Test func aCancelOfOneRunLetsTheOthersContinue() async throws {
        let stub = StubTransport { request in
            if request.number == 2 { return .hold }
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(60))
        let first = Task { try await agent.send(http()) }
        await stub.waitForHeld(1)
        let others = (0..<5).map { _ in Task { try await agent.send(http()) } }
        first.cancel()
        let error = await #expect(throws: RequestError.self) { try await first.value }
        #expect(error?.code == .cancelled)
        for other in others { #expect(try await other.value.value == "answer") }
        #expect((3...7).contains(stub.requests.count))
        await agent.shutdown()
    }

    /// A run that retries leaves nobody waiting for its pauses.
    @Test func otherRunsContinueBeforeAFailureIsRetried() async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1: .response(headers: dated(), body: "answer")
            case 2: .hold
            default: .response(status: 304, headers: dated())
            }
        }
        let agent = bench.agent(stub) { configuration in
            configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .seconds(1000))
        }
        _ = try await agent.send(http())
        bench.advance(by: .seconds(60))
        let first = Task { try await agent.send(http()) }
        await stub.waitForHeld(1)
        let other = Task { try await agent.send(http()) }
        stub.releaseAll(with: .failure(.connect))
        #expect(try await other.value.value == "answer")
        first.cancel()
        _ = await first.result
        await agent.shutdown()
    }

    @Test(arguments: [503, 0]) func aStaleResponseReplacesAFailure(status: Int) async throws {
        let stub = StubTransport { request in
            if request.number == 1 {
                return .response(headers: dated(["Cache-Control": "max-age=60, stale-if-error=60"]), body: "answer")
            }
            return status == 0 ? .failure(.connect) : .response(status: status, headers: Headers(), body: "no")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(90))
        let reply = try await agent.send(http())
        #expect(reply.value == "answer" && reply.response.isStale && stub.requests.count == 2)
        bench.advance(by: .seconds(60))
        let late = try? await agent.send(http())
        #expect(late?.value != "answer" && stub.requests.count == 3)
        await agent.shutdown()
    }

    @Test func anyOtherResponseContinuesAsAnExchange() async throws {
        let stub = StubTransport { request in
            switch request.number {
            case 1: .response(headers: dated(), body: "answer 1")
            case 2: .response(status: 302, headers: ["Location": "/y"])
            case 4: .response(headers: dated(["ETag": "\"b\""]), body: "answer 4")
            case 5: .failure(.connect)
            default:
                .response(
                    status: request.headers["If-None-Match"] == nil ? 200 : 304,
                    headers: dated(["ETag": request.headers["If-None-Match"] ?? "\"a\""]))
            }
        }
        let agent = bench.agent(stub) { $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1)) }
        _ = try await agent.send(http())
        bench.advance(by: .seconds(60))
        let moved = try await agent.send(http())
        #expect(moved.redirects.count == 1 && moved.url.hasSuffix("/y") && moved.attempts == 2)
        bench.advance(by: .seconds(60))
        #expect(try await agent.send(http()).value == "answer 4")
        bench.advance(by: .seconds(60))
        let retried = try await agent.send(http())
        #expect(retried.value == "answer 4" && retried.cacheStatus?.forwardStatus == 304 && stub.requests.count == 6)
        await agent.shutdown()
    }

    @Test func observersSeeTheValidation() async throws {
        final class Watch: RequestObserver {
            let seen = Mutex<[String]>([])
            func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
                seen.withLock { $0.append("\(metrics.cache?.rawValue ?? "none") \(metrics.attempts)") }
            }
        }
        let watch = Watch()
        let stub = StubTransport { request in
            let isFirst = request.headers["If-None-Match"] == nil
            return .response(status: isFirst ? 200 : 304, headers: dated(), body: isFirst ? "answer" : "")
        }
        let agent = bench.agent(stub) { $0.observers = [watch] }
        for _ in 0..<2 {
            _ = try await agent.send(http())
            bench.advance(by: .seconds(60))
        }
        await agent.shutdown()
        #expect(watch.seen.withLock { $0 } == ["miss 1", "revalidated 1"])
    }
}

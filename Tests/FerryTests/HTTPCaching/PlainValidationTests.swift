import FerryCache
import FerryTesting
import FerryTransport
import Synchronization
import Testing

@testable import Ferry

/// When a 304 is only a new date (RFC 9111, 3.2).
@Suite struct RenewalTests {
    private static let usual = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 09:49:37 GMT"

    private func result(_ status: Int, _ fields: [(String, String)], body: String = "") throws -> TransferResult {
        let head = fields.reduce("HTTP/1.1 \(status) \r\n") { $0 + "\($1.0): \($1.1)\r\n" } + "\r\n"
        return try TransferResult(id: 1, head: Array(head.utf8), body: Array(body.utf8))
    }

    private func stored(_ more: [(String, String)] = []) throws -> TransferResult {
        try result(
            200, [("Date", Self.usual), ("ETag", "\"a\""), ("Cache-Control", "max-age=60"), ("X-A", "1")] + more,
            body: "stored")
    }

    /// The fields of a 304, and how many of the stored ones get another value; `nil` where it is no renewal.
    private static let cases: [(fields: [(String, String)], changes: Int?)] = [
        ([("Date", usual)], 0), ([("Date", later)], 1), ([("date", later), ("etag", "\"a\"")], 1),
        ([("ETag", "\"a\""), ("Cache-Control", "max-age=60"), ("X-A", "1"), ("Date", later)], 1),
        ([("Date", later), ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("Content-Length", "7")], 1),
        ([("Date", later), ("Set-Cookie", "a=b"), ("Content-Encoding", "gzip"), ("Connection", "Close")], 1),
        ([], nil), ([("ETag", "\"a\"")], nil), ([("Date", "now")], nil), ([("Date", usual), ("Date", usual)], nil),
        ([("Date", "Sunday, 06-Nov-94 08:49:37 GMT")], nil), ([("Date", later), ("ETag", "\"b\"")], nil),
        ([("Date", later), ("Cache-Control", "max-age=61")], nil), ([("Date", later), ("X-B", "1")], nil),
        ([("Date", later), ("X-A", "1"), ("X-A", "1")], nil), ([("Date", later), ("Age", "1")], nil),
        ([("Date", later), ("Connection", "X-A"), ("X-A", "1")], nil), ([("Date", later), ("Vary", "X-A")], nil),
        ([("Date", later), ("Expires", later)], nil),
    ]

    @Test(arguments: cases.indices) func onlyDatesMayDiffer(index: Int) throws {
        let (fields, changes) = Self.cases[index]
        let (old, new) = (try stored(), try result(304, fields))
        #expect(Renewal.applies(to: old, ResponseDirectives(Headers(old))))
        #expect(Renewal(of: old, by: new)?.changes.count == changes, "\(fields)")
    }

    @Test func theExpiresFieldIsOverwrittenToo() throws {
        let old = try stored([("Expires", Self.usual)])
        let new = try result(304, [("Date", Self.later), ("Expires", Self.later)])
        let renewal = try #require(Renewal(of: old, by: new))
        let made = try #require(TransferResult(revising: old, renewal.changes))
        #expect(Headers(made)["Date"] == Self.later && Headers(made)["Expires"] == Self.later)
        #expect(Headers(old)["Date"] == Self.usual && Headers(made)["X-A"] == "1")
        #expect(try Renewal(of: old, by: result(304, [("Date", Self.later), ("Expires", "0")])) == nil)
    }

    @Test func otherChangesAreMadeFieldByField() throws {
        for more in [[("X-A", "2")], [("Cache-Control", "no-cache=\"x-a\"")], [("Cache-Control", "private=\"x-a\"")]] {
            let old = try stored(more)
            #expect(!Renewal.applies(to: old, ResponseDirectives(Headers(old))), "\(more)")
        }
        let undated = try result(200, [("ETag", "\"a\"")])
        #expect(!Renewal.applies(to: undated, ResponseDirectives(Headers())))
        let many = try result(200, [("Date", Self.usual)] + (0..<64).map { ("X-\($0)", "1") })
        #expect(!Renewal.applies(to: many, ResponseDirectives(Headers())))
    }

    /// The body is that of the first, which may be gone.
    @Test func aRenewedResultOutlivesItsSources() throws {
        func renewed() throws -> TransferResult {
            var last = try stored()
            for hour in 10..<20 {
                let new = try result(304, [("Date", "Sun, 06 Nov 1994 \(hour):49:37 GMT")])
                let renewal = try #require(Renewal(of: last, by: new))
                last = try #require(TransferResult(revising: last, renewal.changes))
            }
            return last
        }
        let last = try renewed()
        #expect(String(decoding: last.body, as: UTF8.self) == "stored" && last.status == 200)
        #expect(Headers(last)["Date"] == "Sun, 06 Nov 1994 19:49:37 GMT")
        let other = [TransferResult.FieldChange(index: 3, value: UnsafeRawBufferPointer(start: nil, count: 0))]
        #expect(TransferResult(revising: last, other) == nil)
        let missing = [TransferResult.FieldChange(index: 4, value: last.body)]
        #expect(TransferResult(revising: last, missing) == nil)
    }

    @Test func theUsualFormOfADateIsParsedLikeTheOthers() {
        for seconds in stride(from: -60_000_000_000, through: 250_000_000_000 as Int64, by: 7_654_321_987) {
            let date = HTTPDate(secondsSince1970: seconds)
            let text = date.description
            #expect(HTTPDate(text, now: date) == date)
            #expect(Array(text.utf8).withUnsafeBytes { HTTPDate(usual: $0) } == date)
        }
        for text in [
            "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun; 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "",
        ] { #expect(Array(text.utf8).withUnsafeBytes { HTTPDate(usual: $0) } == nil, "\(text)") }
        #expect(HTTPDate("sun, 06 nov 1994 08:49:37 gmt", now: HTTPDate(secondsSince1970: 0), ignoresCase: true) != nil)
    }
}

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
        action.withLock { $0 }?()
    }
}

/// Validations by one transfer: they come to what an exchange comes to, and withstand what comes between.
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

    /// Runs that are started go the long way.
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

    /// Of many validations within a second, one is stored: the others say nothing new but a fraction of a second.
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

    /// What others wait for.
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

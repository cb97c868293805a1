import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// A GET with caching by RFC 9111.
func http(
    _ headers: Headers = Headers(), path: String = "/x", method: HTTPMethod = .get, mode: CacheMode = .cacheElseNetwork,
    sensitiveData: String? = nil
) -> Kept {
    Kept(
        path: path, method: method, headers: headers,
        cachePolicy: .http(sensitiveData: sensitiveData, write: .synchronous), cacheMode: mode, statusValidation: .any)
}

/// Responds with 304 to its own tag, and otherwise with the number of the request.
private func tagged(_ control: String = "max-age=60", _ more: Headers = Headers()) -> StubTransport {
    StubTransport { request in
        var headers: Headers = ["Cache-Control": control, "ETag": "\"a\""]
        for field in more { headers.append(field.name, field.value) }
        headers.append("X-Number", "\(request.number)")
        if request.headers["If-None-Match"] == "\"a\"" { return .response(status: 304, headers: headers) }
        return .response(headers: headers, body: "answer \(request.number)")
    }
}

/// Runs with `CachePolicy.http`: what is reused, validated and updated.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheRunTests {
    private let bench = CacheBench()

    @Test(arguments: [true, false]) func aFreshResponseIsReused(memory: Bool) async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]), memory: memory)
        let first = try await agent.send(http())
        #expect(first.cacheStatus?.description == "Ferry; fwd=uri-miss; stored; ttl=60")
        #expect(!first.isFromCache && first.headers["Age"] == nil)
        bench.advance(by: .seconds(10))
        let hit = try await agent.send(http())
        #expect(hit.value == "answer 1" && hit.isFromCache && hit.response.age == .seconds(10))
        #expect(hit.cacheStatus?.description == "Ferry; hit; ttl=50")
        #expect(hit.headers["Age"] == "10" && hit.headers.last?.name == "Age" && hit.headers.fields.count == 2)
        #expect(hit.metrics.cache == .hit && hit.attempts == 0)
        bench.advance(by: .seconds(50))
        #expect(try await texts(agent, http()) == ["answer 2"])
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aStaleResponseIsValidatedAndUpdated(memory: Bool) async throws {
        let stub = tagged()
        let agent = bench.agent(stub, memory: memory)
        #expect(try await texts(agent, http()) == ["answer 1"])
        bench.advance(by: .seconds(60))
        let validated = try await agent.send(http())
        #expect(validated.value == "answer 1" && !validated.isFromCache && validated.status == 200)
        #expect(validated.headers["X-Number"] == "2")
        #expect(validated.cacheStatus?.description == "Ferry; fwd=stale; fwd-status=304; stored; ttl=60")
        #expect(validated.metrics.cache == .revalidated && validated.attempts == 1)
        let hit = try await agent.send(http())
        #expect(hit.isFromCache && hit.value == "answer 1" && hit.headers["X-Number"] == "2")
        #expect(stub.requests.count == 2)
        #expect(await agent.cache.statistics.validations == 1)
        await agent.shutdown()
    }

    @Test func whatIsStoredIsTheNextAgentsToo() async throws {
        let first = bench.agent(tagged("max-age=60", ["Vary": "Accept"]))
        _ = try await texts(first, http(["Accept": "a"]), http(["Accept": "b"]))
        await first.shutdown()
        let second = bench.agent(counting())
        let all = try await texts(second, http(["Accept": "b"]), http(["Accept": "a"]), http(["Accept": "c"]))
        #expect(all == ["cached answer 1", "cached answer 1", "answer 1"])
        await second.shutdown()
    }

    /// The agent sets their `Accept`.
    @Test(arguments: [true, false]) func acceptedContentTypesSelectTheVariant(memory: Bool) async throws {
        let stub = StubTransport { request in
            .response(
                headers: ["Cache-Control": "max-age=60", "Vary": "Accept", "Content-Type": "text/plain"],
                body: request.headers["Accept"] ?? "none")
        }
        let agent = bench.agent(stub, memory: memory)
        for _ in 1...2 {
            for types in [nil, ["text/*"], ["text/plain", "*/*"]] {
                var request = HTTPRequest(.get, "/x", as: String.self)
                request.cachePolicy = .http(write: .synchronous)
                request.acceptedContentTypes = types
                #expect(try await agent.send(request).value == types?.joined(separator: ", ") ?? "none")
            }
        }
        #expect(stub.requests.count == 3)
        await agent.shutdown()
    }

    /// RFC 9111, 4.1 and 4.3.4
    @Test func theTagsOfAllVariantsAreAskedFor() async throws {
        let stub = StubTransport { request in
            let tag = request.headers["Accept"] == "b" ? "\"b\"" : "\"a\""
            let headers: Headers = ["Cache-Control": "max-age=60", "ETag": tag, "Vary": "Accept"]
            if request.headers["If-None-Match"]?.contains(tag) == true {
                return .response(status: 304, headers: headers)
            }
            return .response(headers: headers, body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, http(["Accept": "a"]), http(["Accept": "b"]))
        #expect(stub.requests[1].headers["If-None-Match"] == "\"a\"")
        let third = try await agent.send(http(["Accept": "c"]))
        #expect(stub.requests[2].headers["If-None-Match"] == "\"b\", \"a\"")
        #expect(third.value == "answer 1" && third.cacheStatus?.forward == .varyMiss)
        #expect(try await texts(agent, http(["Accept": "c"])) == ["cached answer 1"])
        await agent.shutdown()
    }

    @Test func aValidationOfWhatIsNotStoredIsAskedAgainWithoutConditions() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") {
                return .response(status: 304, headers: ["ETag": "\"other\""])
            }
            return .response(headers: ["ETag": "\"a\""], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http(), http()) == ["answer 1", "answer 3"])
        #expect(try await agent.send(http()).attempts == 2)
        await agent.shutdown()
    }

    @Test func aServerThatAnswersOnlyWith304IsNotAskedForEver() async throws {
        let stub = StubTransport { request in
            if request.number == 1 { return .response(headers: ["ETag": "\"a\""], body: "answer") }
            // What a run that never ends would request.
            return request.number > 9 ? .failure(.connect) : .response(status: 304, headers: ["ETag": "\"other\""])
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == ["answer"])
        let second = try await agent.send(http())
        #expect(second.status == 304 && second.attempts == 2)
        #expect(stub.requests.map { $0.headers.contains("If-None-Match") } == [false, true, false])
        await agent.shutdown()
    }

    @Test func aNewerResponseThatIsNotStoredTakesTheOldOneAway() async throws {
        let stub = StubTransport { request in
            .response(
                headers: ["Cache-Control": request.number == 1 ? "max-age=60" : "no-store"],
                body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let pressed = http(["Cache-Control": "no-cache"])
        #expect(try await texts(agent, http(), pressed, http()) == ["answer 1", "answer 2", "answer 3"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5
    @Test func aResponseToHeadUpdatesOrRemoves() async throws {
        let tag = Mutex("\"a\"")
        let stub = StubTransport { request in
            .response(
                headers: ["Cache-Control": "max-age=60", "ETag": tag.withLock { $0 }, "X-N": "\(request.number)"],
                body: request.method == .head ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let head = http(method: .head)
        #expect(try await texts(agent, http(), head) == ["answer 1", "cached "])
        bench.advance(by: .seconds(60))
        #expect(try await agent.send(head).headers["X-N"] == "2")
        #expect(try await agent.send(http()).headers["X-N"] == "2")
        bench.advance(by: .seconds(60))
        tag.withLock { $0 = "\"b\"" }
        #expect(try await texts(agent, head, http()) == ["", "answer 4"])
        await agent.shutdown()
    }

    @Test func aStoredResponseAnswersForAPart() async throws {
        let stub = counting(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        let part = try await agent.send(http(["Range": "bytes=0-2"]))
        #expect(part.status == 206 && part.value == "ans" && part.headers["Content-Range"] == "bytes 0-2/8")
        #expect(try await agent.send(http(["Range": "bytes=-1", "If-Range": "\"a\""])).value == "1")
        #expect(try await agent.send(http(["Range": "bytes=-1", "If-Range": "\"b\""])).value == "answer 1")
        #expect(stub.requests.count == 1)
        #expect(try await agent.send(http(["Range": "bytes=90-"])).value == "answer 2")
        await agent.shutdown()
    }

    @Test func aConditionOfTheRequestIsAnswered() async throws {
        let stub = tagged()
        let agent = bench.agent(stub)
        let own = http(["If-None-Match": "\"a\""])
        #expect(try await agent.send(own).status == 304)
        #expect(try await texts(agent, http()) == ["answer 2"])
        let reply = try await agent.send(own)
        #expect(reply.status == 304 && reply.headers["ETag"] == "\"a\"" && reply.isFromCache)
        #expect(try await agent.send(http(["If-None-Match": "\"b\""])).value == "answer 2")
        bench.advance(by: .seconds(60))
        // Its caller gets the 304 it asked for, and the cache learns from it.
        #expect(try await agent.send(own).status == 304)
        #expect(try await texts(agent, http()) == ["cached answer 2"])
        #expect(stub.requests.count == 3)
        // Only the server can evaluate this one.
        _ = try await agent.send(http(["If-Match": "\"a\""]))
        #expect(stub.requests.count == 4)
        await agent.shutdown()
    }

    /// RFC 9111, 5.2.1.7
    @Test func aRequestMayForbidTheNetwork() async throws {
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = bench.agent(stub)
        let only = http(["Cache-Control": "only-if-cached"])
        let none = try await agent.send(only)
        #expect(none.status == 504 && !none.isFromCache)
        #expect(await fault { try await agent.send(http(mode: .cacheOnly)) } == .notCached(.notFound))
        _ = try await agent.send(http())
        #expect(try await texts(agent, only, http(mode: .cacheOnly)) == ["cached answer 1", "cached answer 1"])
        bench.advance(by: .seconds(60))
        #expect(await fault { try await agent.send(http(mode: .cacheOnly)) } == .notCached(.expired))
        #expect(stub.requests.count == 1)
        #expect(try await texts(agent, http(mode: .reload)) == ["answer 2"])
        await agent.shutdown()
    }

    @Test(arguments: [503, 0]) func aStaleResponseStandsInWhereItMay(status: Int) async throws {
        let control = Mutex("max-age=60, stale-if-error=60")
        let stub = StubTransport { request in
            if request.number % 2 == 0 {
                return status == 0 ? .failure(.connectionReset) : .response(status: status)
            }
            return .response(
                headers: ["Cache-Control": control.withLock { $0 }], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(100))
        let stale = try await agent.send(http())
        #expect(stale.value == "answer 1" && stale.response.isStale && stale.isFromCache && stale.status == 200)
        #expect(stale.cacheStatus?.ttl == .seconds(-40))
        // A failure of the stub is no attempt, as it has no connection.
        #expect(stale.metrics.attempts == (status == 0 ? 0 : 1))
        control.withLock { $0 = "max-age=60, stale-if-error=60, must-revalidate" }
        #expect(try await texts(agent, http()) == ["answer 3"])
        bench.advance(by: .seconds(100))
        let mode = CacheMode.cacheElseNetwork(staleIfError: .seconds(600))
        if status == 0 {
            #expect(await fault { try await agent.send(http(mode: mode)) } == .connectionReset)
        } else {
            #expect(try await agent.send(http(mode: mode)).status == status)
        }
        await agent.shutdown()
    }

    @Test func aStaleResponseIsServedWhileAnotherIsFetchedOnce() async throws {
        let stub = StubTransport { request in
            if request.number > 1 { return .hold }
            return .response(headers: ["Cache-Control": "max-age=60, stale-while-revalidate=60"], body: "answer 1")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(70))
        for _ in 0..<5 {
            let reply = try await agent.send(http())
            #expect(reply.value == "answer 1" && reply.response.isStale)
        }
        await stub.waitForHeld(1)
        #expect(stub.requests.count == 2)
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=60"], body: "answer 2"))
        await agent.shutdown()
        let next = bench.agent(counting())
        #expect(try await texts(next, http()) == ["cached answer 2"])
        await next.shutdown()
    }

    @Test func runsAtOnceShareOneValidation() async throws {
        let stub = StubTransport { request in
            if request.number > 1 { return .hold }
            return .response(headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""], body: "answer 1")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(60))
        let replies = await withTaskGroup(of: Reply<String>?.self) { group in
            for _ in 0..<20 { group.addTask { try? await agent.send(http()) } }
            await stub.waitForHeld(1)
            stub.releaseAll(
                with: .response(status: 304, headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.allSatisfy { $0?.value == "answer 1" })
        #expect(stub.requests.count == 2)
        await agent.shutdown()
    }

    @Test(
        "Runs do not wait for a validation whose result cannot serve them",
        arguments: [("max-age=0", ""), ("no-cache", ""), ("max-age=60", "max-age=0")], [true, false])
    func runsDoNotWaitInVain(_ fields: (response: String, request: String), isPlain: Bool) async throws {
        let headers: Headers = ["Cache-Control": fields.response, "ETag": "\"a\""]
        let stub = StubTransport { $0.number > 1 ? .hold : .response(headers: headers, body: "answer 1") }
        let agent = bench.agent(stub)
        var request = http(fields.request.isEmpty ? Headers() : ["Cache-Control": fields.request])
        _ = try await agent.send(request)
        bench.advance(by: .seconds(1))
        if !isPlain { request.cacheMode = .cacheElseNetwork(staleIfError: .seconds(1)) }
        let replies = try await withThrowingTaskGroup(of: Reply<String>.self) { [request] group in
            for _ in 0..<6 {
                group.addTask {
                    if isPlain { return try await agent.send(request) }
                    let outcome = Outcome<String>()
                    agent.start(request, completion: outcome.take)
                    return try await outcome.result.get()
                }
            }
            await stub.waitForHeld(6)
            stub.releaseAll(with: .response(status: 304, headers: headers))
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.allSatisfy { $0.value == "answer 1" && $0.cacheStatus?.isCollapsed == false })
        #expect(stub.requests.count == 7)
        await agent.shutdown()
    }

    /// A response that did not pass the checks is fetched again: the server may have been fixed.
    @Test func aHitThatDoesNotPassTheChecksIsFetchedAnew() async throws {
        var number = HTTPRequest(.get, "/x", as: Int.self)
        number.cachePolicy = .http()
        let stub = StubTransport { request in
            .response(headers: ["Cache-Control": "max-age=60"], body: request.number == 1 ? "[]" : "7")
        }
        let agent = bench.agent(stub)
        #expect(await fault { try await agent.send(number) } == .decoding)
        #expect(try await agent.send(number).value == 7)
        #expect(try await agent.send(number).isFromCache)
        await agent.shutdown()
    }

    @Test func runsThatAreStartedUseItTheSameWay() async throws {
        let agent = bench.agent(tagged())
        for expected in ["answer 1", "answer 1"] {
            let outcome = Outcome<String>()
            agent.start(http(), completion: outcome.take)
            #expect(try await outcome.result.get().value == expected)
        }
        bench.advance(by: .seconds(60))
        let outcome = Outcome<String>()
        agent.start(http(), completion: outcome.take)
        #expect(try await outcome.result.get().cacheStatus?.forwardStatus == 304)
        await agent.shutdown()
    }

    @Test func whatIsStoredCanBeReadAndRemovedByHand() async throws {
        let agent = bench.agent(tagged())
        #expect(await fault { try await agent.cache.reply(for: http()) } == .notCached(.notFound))
        _ = try await agent.send(http())
        #expect(try await agent.cache.reply(for: http()).value == "answer 1")
        let seen = Mutex<[String]>([])
        let reply = try await agent.send(http(), cached: { reply in seen.withLock { $0.append(reply.value) } })
        #expect(reply.value == "answer 2" && seen.withLock { $0 } == ["answer 1"])
        #expect(await agent.cache.remove(http()))
        #expect(try await texts(agent, http()) == ["answer 3"])
        await agent.shutdown()
    }

    @Test func theConfigurationsPolicyIsThatOfRequestsThatSayNone() async throws {
        var uncached = HTTPRequest(.get, "/x")
        uncached.cachePolicy = .none
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"])) { $0.cachePolicy = .http() }
        _ = try await agent.send(Get())
        #expect(try await agent.send(Get()).isFromCache)
        let reply = try await agent.send(uncached)
        #expect(reply.text == "answer 2" && reply.cacheStatus == nil)
        await agent.shutdown()
        let other = CacheBench().agent(counting(["Cache-Control": "max-age=60"]))
        _ = try await other.send(Get())
        #expect(try await !other.send(Get()).isFromCache)
        await other.shutdown()
    }
}

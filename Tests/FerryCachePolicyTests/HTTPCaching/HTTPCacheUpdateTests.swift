import FerryTesting
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: what later responses forbid, replace or leave of a stored one.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheUpdateTests {
    private let bench = CacheBench()

    private func shared(_ headers: Headers = Headers(), method: HTTPMethod = .get) -> Kept {
        Kept(
            method: method, headers: headers, cachePolicy: .http(shared: true, write: .synchronous),
            statusValidation: .any)
    }

    /// RFC 9111, 3.2 and 5.2.2.7: the fields of a 304 are those of the stored response from then on.
    @Test(arguments: [true, false])
    func aSharedCacheKeepsNothingThatA304MakesPrivate(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") {
                return .response(status: 304, headers: ["ETag": "\"a\"", "Cache-Control": "private, max-age=60"])
            }
            return .response(
                headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, shared())
        bench.advance(by: .seconds(60))
        var request = shared()
        request.coalesces = !isPlain
        let validated = try await agent.send(request)
        #expect(validated.value == "answer 1" && validated.cacheStatus?.isStored == false)
        #expect(try await texts(agent, shared()) == ["answer 3"])
        await agent.shutdown()
    }

    /// The entry is on disk only. Few other keys are in the same group, so not all of these are.
    @Test func a304IsStoredAlthoughAnotherEntryIsRemovedMeanwhile() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(
                headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: false)
        _ = try await texts(agent, shared())
        var stored = 0
        for number in 1...5 {
            bench.advance(by: .seconds(60))
            let validation = Task { [shared = shared()] in try await agent.send(shared) }
            await stub.waitForHeld(1)
            await agent.cache.remove(Kept(path: "/other\(number)", cachePolicy: .http(shared: true)))
            stub.releaseAll(
                with: .response(status: 304, headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60"]))
            let reply = try await validation.value
            #expect(reply.value == "answer 1")
            if reply.cacheStatus?.isStored == true { stored += 1 }
        }
        #expect(stored > 0)
        // The entry itself stays removed.
        bench.advance(by: .seconds(60))
        let validation = Task { [shared = shared()] in try await agent.send(shared) }
        await stub.waitForHeld(1)
        await agent.cache.remove(shared())
        stub.releaseAll(with: .response(status: 304, headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60"]))
        #expect(try await validation.value.cacheStatus?.isStored == false)
        #expect(try await texts(agent, shared()) == ["answer \(stub.requests.count)"])
        await agent.shutdown()
    }

    /// RFC 9111, 3.5
    @Test func aSharedCacheKeepsNothingOfOneUserThatA304NoLongerGivesToAll() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") {
                return .response(status: 304, headers: ["ETag": "\"a\"", "Cache-Control": "max-age=60"])
            }
            return .response(
                headers: ["ETag": "\"a\"", "Cache-Control": "public, max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, shared(["Authorization": "a"]))
        bench.advance(by: .seconds(60))
        #expect(try await texts(agent, shared(["Authorization": "a"])) == ["answer 1"])
        #expect(try await texts(agent, shared(["Authorization": "b"])) == ["answer 3"])
        await agent.shutdown()
    }

    /// RFC 9111, 3.5: the stored response was sent to somebody without credentials, and the 304 to a user.
    @Test func aSharedCacheKeepsWhatWasForAllWhenAUserValidatesIt() async throws {
        let stub = StubTransport { request in
            let headers: Headers = ["ETag": "\"a\"", "Cache-Control": "max-age=60", "X-Number": "\(request.number)"]
            if request.headers.contains("If-None-Match") { return .response(status: 304, headers: headers) }
            return .response(headers: headers, body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, shared())
        bench.advance(by: .seconds(60))
        let own = try await agent.send(shared(["Authorization": "a"]))
        #expect(own.value == "answer 1" && own.response.headers["X-Number"] == "2")
        #expect(own.cacheStatus?.isStored == false)
        // It stays, but neither the fields for the user nor a new lifetime go to others.
        var stale = shared()
        stale.cacheMode = .cacheOnly
        #expect(await fault { try await agent.send(stale) } == .notCached(.expired))
        let next = try await agent.send(shared())
        #expect(next.value == "answer 1" && next.response.headers["X-Number"] == "3")
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5
    @Test(arguments: ["private, max-age=60", "max-age=60"])
    func aSharedCacheKeepsNothingThatAResponseToHEADTakesBack(control: String) async throws {
        let stub = StubTransport { request in
            let isHead = request.method == .head
            return .response(
                headers: ["ETag": "\"a\"", "Cache-Control": isHead ? control : "public, max-age=60"],
                body: isHead ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let user: Headers = ["Authorization": "a"]
        _ = try await texts(agent, shared(user))
        var head = shared(user, method: .head)
        head.cacheMode = .reload
        _ = try await agent.send(head)
        #expect(try await texts(agent, shared(user)) == ["answer 3"])
        await agent.shutdown()
    }

    /// RFC 5861, 4
    @Test func aStaleRedirectThatStandsInIsFollowed() async throws {
        let stub = StubTransport { request in
            if request.url.hasSuffix("/y") { return .response(body: "answer \(request.number)") }
            if request.number > 2 { return .response(status: 503) }
            return .response(
                status: 301, headers: ["Location": "/y", "Cache-Control": "max-age=10, stale-if-error=60"])
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == ["answer 2"])
        bench.advance(by: .seconds(20))
        let reply = try await agent.send(http())
        #expect(reply.status == 200 && reply.value == "answer 4" && reply.redirects.count == 1)
        await agent.shutdown()
    }

    /// By one plain transfer, as by an exchange.
    @Test(arguments: [true, false]) func aRedirectThatA304ConfirmsIsFollowed(isPlain: Bool) async throws {
        let stub = StubTransport { [bench] request in
            if request.url.hasSuffix("/y") { return .response(body: "answer \(request.number)") }
            let headers: Headers = [
                "Date": HTTPDate(secondsSince1970: bench.now).description, "Location": "/y",
                "Cache-Control": "max-age=10", "ETag": "\"a\"",
            ]
            return .response(status: request.headers.contains("If-None-Match") ? 304 : 301, headers: headers)
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == ["answer 2"])
        bench.advance(by: .seconds(20))
        var request = http()
        request.coalesces = !isPlain
        let reply = try await agent.send(request)
        #expect(reply.status == 200 && reply.value == "answer 4" && reply.redirects.count == 1)
        await agent.shutdown()
    }

    /// The failure is not delivered before the retries that the request has.
    @Test(arguments: [true, false]) func aFailureThatA304ConfirmsIsRetried(isPlain: Bool) async throws {
        let stub = StubTransport { [bench] request in
            let headers: Headers = [
                "Date": HTTPDate(secondsSince1970: bench.now).description, "Cache-Control": "max-age=10",
                "ETag": "\"a\"",
            ]
            if request.number > 2 { return .response(body: "answer \(request.number)") }
            return .response(status: request.headers.contains("If-None-Match") ? 304 : 503, headers: headers)
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == [""])
        bench.advance(by: .seconds(20))
        var request = http()
        request.coalesces = !isPlain
        request.retryPolicy = .exponential(maxAttempts: 3)
        let reply = try await agent.send(request)
        #expect(reply.status == 200 && reply.value == "answer 3" && reply.attempts == 2)
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5: also if the memory keeps nothing when the response to HEAD is stored, too.
    @Test(arguments: [true, false]) func aResponseToHEADUpdatesTheStoredResponse(memory: Bool) async throws {
        let stub = StubTransport { request in
            let isHead = request.method == .head
            let headers: Headers = [
                "ETag": "\"a\"", "Cache-Control": isHead ? "max-age=60" : "max-age=2", "X-Number": "\(request.number)",
            ]
            return .response(headers: headers, body: isHead ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: memory)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(3))
        _ = try await agent.send(http(method: .head))
        let hit = try await agent.send(http())
        #expect(hit.isFromCache && hit.value == "answer 1" && hit.headers["X-Number"] == "2")
        await agent.shutdown()
    }

    /// A 304 with the tag of a stored response to HEAD, which has no body.
    @Test func aResponseToHEADNeverAnswersAGETThatAServerValidatesByIt() async throws {
        let stub = StubTransport { request in
            let isHead = request.method == .head
            let headers: Headers = [
                "Cache-Control": "max-age=10", "Vary": "Accept",
                "ETag": isHead || request.number == 3 ? "\"b\"" : "\"a\"",
            ]
            if request.number == 3 { return .response(status: 304, headers: headers) }
            return .response(headers: headers, body: isHead ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, http(["Accept": "a"]), http(["Accept": "b"], method: .head))
        bench.advance(by: .seconds(20))
        #expect(try await texts(agent, http(["Accept": "a"])) == ["answer 4"])
        #expect(!stub.requests[3].headers.contains("If-None-Match"))
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func whatAReloadHasOutdatedIsNotServed(memory: Bool) async throws {
        let stub = StubTransport { request in
            .response(
                headers: ["Cache-Control": request.number == 1 ? "max-age=60" : "no-store"],
                body: "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: memory)
        let reload = http(mode: .reload)
        #expect(try await texts(agent, http(), reload, http()) == ["answer 1", "answer 2", "answer 3"])
        await agent.shutdown()
    }

    /// RFC 9110, 15.4.5
    @Test func a304OfTheCacheHasTheFieldsOfTheStoredResponse() async throws {
        let agent = bench.agent(
            counting(["Cache-Control": "max-age=60", "ETag": "\"a\"", "Content-Location": "/x.en", "Vary": "Accept"]))
        _ = try await texts(agent, http())
        let reply = try await agent.send(http(["If-None-Match": "\"a\""]))
        #expect(reply.status == 304 && reply.isFromCache && reply.headers["Content-Location"] == "/x.en")
        #expect(reply.headers["Vary"] == "Accept" && reply.headers["Content-Length"] == nil)
        await agent.shutdown()
    }

    /// RFC 9111, 4.4: the response may be older than the change.
    @Test(arguments: [false, true])
    func aResponseIsNotStoredIfAnotherAgentHasInvalidatedItMeanwhile(validates: Bool) async throws {
        let fields: Headers = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
        let stub = StubTransport { request in
            request.number == (validates ? 2 : 1) ? .hold : .response(headers: fields, body: "answer \(request.number)")
        }
        let (agent, other) = (bench.agent(stub), bench.agent(counting()))
        if validates {
            _ = try await texts(agent, http())
            bench.advance(by: .seconds(60))
        }
        async let slow = agent.send(http())
        await stub.waitForHeld(1)
        _ = try await other.send(http(method: .post))
        await other.shutdown()
        await nextTick()
        stub.releaseAll(with: .response(status: validates ? 304 : 200, headers: fields, body: validates ? "" : "slow"))
        #expect(try await slow.cacheStatus?.isStored == false)
        let next = validates ? "answer 3" : "answer 2"
        #expect(try await texts(agent, http(), http()) == [next, "cached \(next)"])
        await agent.shutdown()
    }

    /// An agent looks for removals by others once in a tick of this clock, usually 4 ms.
    private func nextTick() async {
        func tick() -> Int {
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC_COARSE, &now)
            return now.tv_nsec
        }
        let start = tick()
        while tick() == start { await Task.yield() }
    }
}

import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: what responses to HEAD tell about responses to GET (RFC 9111, 4.3.5), in the order of
/// their requests.
@Suite(.timeLimit(.minutes(1))) struct CacheHEADTests {
    private let bench = CacheBench()

    private func kept(method: HTTPMethod = .get, mode: CacheMode = .cacheElseNetwork) -> Kept {
        http(method: method, mode: mode)
    }

    /// RFC 9111, 4.3.5: the response to the later HEAD updates the one to GET, whichever comes first.
    @Test(arguments: [("no-cache", "answer 3"), ("max-age=60", "cached whole")])
    func aLaterHEADUpdatesTheEarlierGET(directive: String, text: String) async throws {
        let stub = StubTransport { request in
            if request.number == 1 { return .hold }
            return .response(
                headers: ["Cache-Control": directive, "ETag": "\"a\""], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let first = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(method: .head))
        stub.releaseAll(
            with: .response(headers: ["Cache-Control": "max-age=600", "ETag": "\"a\""], body: "whole"))
        #expect(try await first.value.value == "whole")
        #expect(try await texts(agent, kept()) == [text])
        await agent.shutdown()
    }

    /// A response to a HEAD that was sent later has shown that the resource exists by now.
    @Test func anEarlierErrorIsNotStoredBehindALaterHEAD() async throws {
        let stub = StubTransport { request in
            request.number == 1
                ? .hold : .response(headers: ["Cache-Control": "max-age=600"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let first = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(method: .head))
        stub.releaseAll(with: .response(status: 404, headers: ["Cache-Control": "max-age=600"]))
        #expect(try await first.value.response.status == 404)
        #expect(try await texts(agent, kept()) == ["answer 3"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5: what an earlier HEAD says does not replace what a later one has said.
    @Test func anEarlierHEADDoesNotUndoALaterOne() async throws {
        let stub = StubTransport { request in
            request.number == 2
                ? .hold
                : .response(
                    headers: ["Cache-Control": request.number == 3 ? "no-cache" : "max-age=600", "ETag": "\"a\""],
                    body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, kept()) == ["answer 1"])
        let earlier = Task { [request = kept(method: .head, mode: .reload)] in try await agent.send(request) }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(method: .head, mode: .reload))
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=600", "ETag": "\"a\""]))
        _ = try await earlier.value
        #expect(try await texts(agent, kept()) == ["answer 4"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5: nor does the 304 to an earlier GET.
    @Test(arguments: [CacheMode.cacheElseNetwork, .revalidate])
    func anEarlierValidationDoesNotUndoALaterHEAD(mode: CacheMode) async throws {
        let stub = StubTransport { request in
            if request.number == 2 { return .hold }
            let directive = request.number == 1 ? "max-age=1" : "no-cache"
            return .response(headers: ["Cache-Control": directive, "ETag": "\"a\""], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, kept()) == ["answer 1"])
        bench.advance(by: .seconds(2))
        let validated = Task { [request = kept(mode: mode)] in try await agent.send(request).value }
        await stub.waitForHeld(1)
        bench.advance(by: .seconds(1))
        _ = try await agent.send(kept(method: .head, mode: .reload))
        bench.advance(by: .seconds(1))
        stub.releaseAll(
            with: .response(status: 304, headers: ["Cache-Control": "max-age=3600", "ETag": "\"a\""]))
        #expect(try await validated.value == "answer 1")
        #expect(try await texts(agent, kept()) == ["answer 4"])
        await agent.shutdown()
    }

    /// A response to HEAD does not make the body of an earlier GET as new as itself.
    @Test func aLaterHEADDoesNotKeepALaterGETOut() async throws {
        let fields: Headers = ["Cache-Control": "max-age=600"]
        let stub = StubTransport { request in
            request.number < 3 ? .hold : .response(headers: fields)
        }
        let agent = bench.agent(stub)
        var runs: [Task<Reply<String>, any Error>] = []
        for number in 1...2 {
            runs.append(Task { [request = kept()] in try await agent.send(request) })
            await stub.waitForHeld(number)
            bench.advance(by: .seconds(1))
        }
        _ = try await agent.send(kept(method: .head))
        for (index, body) in ["old", "new"].enumerated() {
            stub.respond(to: stub.requests[index], with: .response(headers: fields, body: body))
            _ = try await runs[index].value
        }
        #expect(try await texts(agent, kept()) == ["cached new"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.3.5: without lifetime and validator it is not stored itself, but it says that the response to GET is
    /// still the same.
    @Test func aHEADWithoutFieldsForCachesLeavesTheResponseToGET() async throws {
        let stub = StubTransport { request in
            request.method == "HEAD"
                ? .response() : .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, kept()) == ["answer 1"])
        _ = try await agent.send(kept(method: .head, mode: .reload))
        #expect(try await texts(agent, kept()) == ["cached answer 1"])
        await agent.shutdown()
    }

    /// What must not be stored changes nothing that is stored, and shows that it is out of date.
    @Test func aHEADThatMustNotBeStoredRemovesTheResponseToGET() async throws {
        let stub = StubTransport { request in
            let directive = request.method == "HEAD" ? "no-store" : "max-age=60"
            return .response(headers: ["Cache-Control": directive], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, kept()) == ["answer 1"])
        _ = try await agent.send(kept(method: .head, mode: .reload))
        #expect(try await texts(agent, kept()) == ["answer 3"])
        await agent.shutdown()
    }
}

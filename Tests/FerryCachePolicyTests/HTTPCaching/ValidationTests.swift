import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// 304s that meet removals, conditions of the caller, another `Vary`, redirects and a cancel.
@Suite(.timeLimit(.minutes(1))) struct ValidationTests {
    private let bench = CacheBench()

    private func kept(_ path: String = "/x", _ headers: Headers = Headers(), isPlain: Bool = true) -> Kept {
        var request = Kept(
            path: path, headers: headers, cachePolicy: .http(write: .synchronous), statusValidation: .any)
        request.coalesces = !isPlain
        return request
    }

    private func dated(_ more: Headers) -> Headers {
        var headers: Headers = ["Date": HTTPDate(secondsSince1970: bench.now).description]
        for field in more { headers.append(field.name, field.value) }
        return headers
    }

    @Test(arguments: [true, false], [true, false])
    func whatIsRemovedDuringAValidationStaysRemoved(isPlain: Bool, all: Bool) async throws {
        let fields: Headers = ["ETag": "\"a\"", "Cache-Control": "max-age=5"]
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(headers: dated(fields), body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        async let validated = agent.send(kept(isPlain: isPlain))
        await stub.waitForHeld(1)
        #expect(await all ? agent.cache.removeAll() : agent.cache.remove(kept()))
        stub.releaseAll(with: .response(status: 304, headers: dated(fields)))
        let reply = try await validated
        #expect(reply.value == "answer 1" && reply.cacheStatus?.isStored == false)
        #expect(try await agent.send(kept()).value == "answer 3")
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aPOSTDuringAValidationInvalidates(isPlain: Bool) async throws {
        let fields: Headers = ["ETag": "\"a\"", "Cache-Control": "max-age=5"]
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(headers: dated(fields), body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        async let second = agent.send(kept(isPlain: isPlain))
        await stub.waitForHeld(1)
        var post = kept()
        post.method = .post
        _ = try await agent.send(post)
        stub.releaseAll(with: .response(status: 304, headers: dated(fields)))
        let validated = try await second
        #expect(validated.value == "answer 1" && validated.cacheStatus?.isStored != true)
        #expect(try await agent.send(kept()).value == "answer 4")
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aVaryOfThe304AppliesFromThenOn(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            let language = request.headers["Accept-Language"] ?? ""
            let asks = request.headers["If-None-Match"] == "\"de\"" && language == "de"
            var fields = dated(["ETag": "\"\(language)\"", "Cache-Control": "max-age=5"])
            if request.number > 1 { fields["Vary"] = "Accept-Language" }
            return .response(status: asks ? 304 : 200, headers: fields, body: asks ? "" : language)
        }
        let agent = bench.agent(stub)
        let german = kept("/x", ["Accept-Language": "de"], isPlain: isPlain)
        let english = kept("/x", ["Accept-Language": "en"], isPlain: isPlain)
        _ = try await agent.send(german)
        bench.advance(by: .seconds(10))
        let renewed = try await agent.send(german)
        #expect(renewed.value == "de" && renewed.cacheStatus?.forwardStatus == 304)
        #expect(try await agent.send(english).value == "en")
        #expect(try await agent.send(german).value == "de")
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func theCallersOwnConditionGetsThe304(isPlain: Bool) async throws {
        let fields: Headers = ["ETag": "\"a\"", "Cache-Control": "max-age=5"]
        let stub = StubTransport { request in
            let asks = request.headers.contains("If-None-Match")
            return .response(
                status: asks ? 304 : 200, headers: dated(fields), body: asks ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        let own = try await agent.send(kept("/x", ["If-None-Match": "\"a\""], isPlain: isPlain))
        #expect(own.response.status == 304 && own.value == "")
        #expect(stub.requests.last?.headers.values(of: "If-None-Match") == ["\"a\""])
        // It has updated the stored response.
        let next = try await agent.send(kept())
        #expect(next.value == "answer 1" && next.isFromCache)
        // One that names another tag says nothing of the stored response.
        bench.advance(by: .seconds(10))
        let before = stub.requests.count
        let other = try await agent.send(kept("/x", ["If-None-Match": "\"z\""], isPlain: isPlain))
        #expect(other.response.status == 304 && stub.requests.count == before + 1)
        await agent.shutdown()
    }

    /// The caller's tag is not stored: the 304 with it does not speak of the stored response.
    @Test(arguments: [true, false]) func the304OfAnotherTagOfTheCallersDoesNotRenew(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            if let tag = request.headers["If-None-Match"] {
                return .response(status: 304, headers: dated(["ETag": tag, "Cache-Control": "max-age=5"]))
            }
            return .response(
                headers: dated(["ETag": "\"\(request.number)\"", "Cache-Control": "max-age=5"]),
                body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        let other = try await agent.send(kept("/x", ["If-None-Match": "\"z\""], isPlain: isPlain))
        #expect(other.response.status == 304)
        let next = try await agent.send(kept())
        #expect(!next.isFromCache && stub.requests.count == 3)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func theTargetOfARedirectIsValidated(isPlain: Bool) async throws {
        for isTemporary in [true, false] {
            let stub = StubTransport { request in
                if request.url.hasSuffix("/a") {
                    let fields: Headers = isTemporary ? [:] : ["Cache-Control": "max-age=5", "ETag": "\"r\""]
                    if request.headers.contains("If-None-Match") {
                        return .response(status: 304, headers: dated(fields))
                    }
                    var all = dated(fields)
                    all["Location"] = "/b"
                    return .response(status: 302, headers: all)
                }
                let asks = request.headers.contains("If-None-Match")
                return .response(
                    status: asks ? 304 : 200, headers: dated(["ETag": "\"b\"", "Cache-Control": "max-age=5"]),
                    body: asks ? "" : "answer \(request.number)")
            }
            let agent = bench.agent(stub)
            _ = try await agent.send(kept("/a", isPlain: isPlain))
            bench.advance(by: .seconds(10))
            let again = try await agent.send(kept("/a", isPlain: isPlain))
            #expect(again.value == "answer 2" && again.response.url.hasSuffix("/b"))
            #expect(again.cacheStatus?.forwardStatus == 304 && stub.requests.count == 4)
            let direct = try await agent.send(kept("/b"))
            #expect(direct.value == "answer 2" && direct.isFromCache)
            _ = await agent.cache.removeAll()
            await agent.shutdown()
        }
    }

    /// The server has lost its tag, and repeats the body.
    @Test(arguments: [true, false]) func a304WithoutAnyFieldRenews(isPlain: Bool) async throws {
        let stub = StubTransport { request in
            let asks = request.headers.contains("If-None-Match")
            return .response(
                status: asks ? 304 : 200, headers: asks ? [:] : ["ETag": "\"b\"", "Cache-Control": "max-age=5"],
                body: asks ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        #expect(try await agent.send(kept(isPlain: isPlain)).value == "answer 1")
        #expect(try await agent.send(kept()).isFromCache)
        await agent.shutdown()
    }

    @Test func aCancelledValidationLeavesTheStoredResponse() async throws {
        let stub = StubTransport { request in
            if request.number == 2 { return .hold }
            let asks = request.headers.contains("If-None-Match")
            return .response(
                status: asks ? 304 : 200, headers: dated(["ETag": "\"b\"", "Cache-Control": "max-age=5"]),
                body: asks ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(10))
        let task = Task { try await agent.send(kept()) }
        await stub.waitForHeld(1)
        let waiting = Task { try await agent.send(kept()) }
        task.cancel()
        _ = try? await task.value
        #expect(try await waiting.value.value == "answer 1")
        await agent.shutdown()
    }

    /// If only dates have changed, no variant is written, however many there are with this validator.
    @Test func aValidationOfSeveralVariantsWritesNoneOfThem() async throws {
        let bench = CacheBench()
        let stub = StubTransport { request in
            let headers: Headers = ["Cache-Control": "max-age=1", "ETag": "\"a\"", "Vary": "Origin"]
            if request.headers["If-None-Match"] == nil { return .response(headers: headers, body: "whole") }
            return .response(status: 304, headers: headers)
        }
        let agent = bench.agent(stub)
        func kept(_ origin: String) -> Kept {
            var request = http()
            request.headers = ["Origin": origin]
            return request
        }
        for origin in ["a", "b", "c"] { _ = try await agent.send(kept(origin)) }
        // The first asks with the validators of the others.
        let written = await agent.cache.statistics.writes
        bench.advance(by: .seconds(2))
        for origin in ["a", "b", "c"] {
            let reply = try await agent.send(kept(origin))
            #expect(reply.cacheStatus?.forwardStatus == 304 || reply.isFromCache)
        }
        #expect(await agent.cache.statistics.writes == written)
        await agent.shutdown()
    }
}

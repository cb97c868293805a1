import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Settings that a hierarchy shares.
private class ShopRequest: BaseRequest, @unchecked Sendable {
    override var baseURL: String? { "http://shop/v1" }
    override var headers: Headers { ["X-Shop": "1"] }
    override var tag: String? { "shop" }
}

private class ItemRequest: ShopRequest, @unchecked Sendable {
    let id: Int
    init(id: Int) { self.id = id }
    override var path: String { "/items/\(id)" }
}

private final class Removal: ItemRequest, @unchecked Sendable {
    override var method: HTTPMethod { .delete }
    override var headers: Headers {
        var headers = super.headers
        headers["X-Reason"] = "sold"
        return headers
    }
}

/// Replaces every member: it does not compile if the base class lacks one that is overridden here.
private class Everything: BaseRequest, @unchecked Sendable {
    let calls = Mutex<[String]>([])
    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    override var path: String { "p" }
    override var baseURL: String? { "http://base" }
    override var cdnURL: String? { "http://cdn/v2" }
    override var usesCDN: Bool { true }
    override var method: HTTPMethod { .post }
    override var prebuiltRequest: OutgoingRequest? { nil }
    override var headers: Headers { ["X-Own": "1"] }
    override var arguments: Arguments { ["a": 1] }
    override var argumentEncoding: ArgumentEncoding { .query }
    override var body: RequestBody? { .string("body") }
    override var authorization: Authorization? { .bearer("t") }
    override var acceptedEncodings: [ContentEncoding]? { [] }
    override var timeouts: Timeouts? { Timeouts(connect: .seconds(1), idle: nil) }
    override var deadline: Duration? { .seconds(3600) }
    override var priority: RequestPriority { .high }
    override var isIdempotent: Bool { true }
    override var redirectPolicy: RedirectPolicy? { RedirectPolicy.none }
    override var retryPolicy: RetryPolicy? { RetryPolicy.none }
    override var addressPolicy: AddressPolicy? { .any }
    override var usesAuthenticator: Bool { false }
    override var statusValidation: StatusValidation? { .codes([302, 404]) }
    override var responseFormat: ResponseFormat { .data }
    override var acceptedContentTypes: [String]? { ["text/*"] }
    override var jsonSchema: JSONSchema? { ["a": .number] }
    override var jsonDecoder: FerryJSONDecoder { FerryJSONDecoder() }
    override var maxBodyBytes: Int? { 1000 }
    override var observers: [any RequestObserver] { [] }
    override var tag: String? { "all" }
    override var userInfo: [String: any Sendable] { ["k": 1] }

    override func value(from response: Response) throws -> Response {
        note("value")
        return response
    }
    override func completionPreprocessor(_ reply: Reply<Response>) { note("completionPreprocessor") }
    override func failurePreprocessor(_ error: RequestError) { note("failurePreprocessor") }
    override func willDeliver(_ result: Result<Reply<Response>, RequestError>) { note("willDeliver") }
}

private final class Least: BaseRequest, @unchecked Sendable {
    override var path: String { "/x" }
}

/// A hierarchy whose members have values of their own.
private class TypedItem<Value: Sendable>: TypedBaseRequest<Value>, @unchecked Sendable {
    override var path: String { "/typed" }
}

private struct Priced: Decodable, Sendable, Equatable { let price: Int }

private final class Price: TypedItem<Priced>, @unchecked Sendable {}
private final class Title: TypedItem<String>, @unchecked Sendable {}
private final class Tree: TypedItem<JSON>, @unchecked Sendable {}
private final class Absent: TypedItem<Void>, @unchecked Sendable {}
private final class Odd: TypedItem<Duration?>, @unchecked Sendable {
    override func value(from response: Response) throws -> Duration? { .seconds(1) }
}
private struct NoValue: Sendable {}
private final class Unknown: TypedItem<NoValue>, @unchecked Sendable {}

@Suite struct BaseRequestTests {
    @Test func aSubclassOfATypedBaseHasAValueOfItsOwn() async throws {
        let agent = NetworkAgent(
            configuration: .test, stub: StubTransport(always: .response(body: #"{"price": 7}"#)))
        #expect(try await agent.send(Price()).value == Priced(price: 7))
        #expect(try await agent.send(Title()).value == #"{"price": 7}"#)
        #expect(try await agent.send(Tree()).value["price"]?.int == 7)
        #expect(try await agent.send(Odd()).value == .seconds(1))
        try await agent.send(Absent())
        let error = await #expect(throws: RequestError.self) { try await agent.send(Unknown()) }
        #expect(error?.code == .decoding && error?.message.contains("NoValue") == true)
    }

    @Test func theStepThatFailedHasTheNameOfTheSubclass() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response(status: 500)))
        let error = await #expect(throws: RequestError.self) {
            try await agent.send(ChainRequest(value: 1).then { _ in Removal(id: 2) as BaseRequest })
        }
        #expect(error?.failedStep == "Removal")
    }

    private func sent(_ requests: [BaseRequest]) async throws -> [StubTransport.Request] {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        for request in requests { try await agent.send(request) }
        return stub.requests
    }

    @Test func subclassesOfSubclassesReplaceMembers() async throws {
        let requests = try await sent([ItemRequest(id: 1), Removal(id: 2)])
        #expect(requests.map(\.url) == ["http://shop/v1/items/1", "http://shop/v1/items/2"])
        #expect(requests.map(\.method) == [.get, .delete])
        #expect(requests[0].headers == ["X-Shop": "1"])
        #expect(requests[1].headers == ["X-Shop": "1", "X-Reason": "sold"])
    }

    @Test func whatIsNotReplacedIsAsInAStruct() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        try await agent.send(Least())
        try await agent.send(Get())
        let (made, plain) = (stub.requests[0], stub.requests[1])
        #expect(made.url == plain.url && made.method == plain.method && made.headers == plain.headers)
        #expect(made.priority == plain.priority && made.timeouts == plain.timeouts)
        #expect(made.isIdempotent == plain.isIdempotent && made.hasBody == plain.hasBody)
    }

    @Test func everyReplacedMemberCounts() async throws {
        let stub = StubTransport(
            always: .response(status: 404, headers: ["Content-Type": "text/plain"], body: #"{"a":1}"#))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let request = Everything()
        try await agent.send(request)
        let seen = try #require(stub.requests.first)
        #expect(seen.url == "http://cdn/v2/p?a=1")
        #expect(seen.method == .post && seen.text == "body")
        #expect(seen.headers["X-Own"] == "1" && seen.headers["Authorization"] == "Bearer t")
        #expect(seen.timeouts.connect == 1000 && seen.timeouts.idle == nil && seen.timeouts.deadline == 3_600_000)
        #expect(seen.priority == .high && seen.isIdempotent)
        #expect(request.calls.withLock { $0 } == ["value", "completionPreprocessor", "willDeliver"])

        let redirecting = StubTransport(
            always: .response(
                status: 302, headers: ["Location": "/y", "Content-Type": "text/plain"], body: #"{"a":1}"#))
        try await NetworkAgent(configuration: .test, stub: redirecting).send(Everything())
        #expect(redirecting.requests.count == 1, "its policy follows none")

        let html = NetworkAgent(
            configuration: .test,
            stub: StubTransport(always: .response(status: 404, headers: ["Content-Type": "image/png"], body: "x")))
        let refused = Everything()
        #expect(await code { () throws(RequestError) in try await html.send(refused) } == .invalidContentType)
        #expect(refused.calls.withLock { $0 } == ["failurePreprocessor", "willDeliver"])

        let other = NetworkAgent(
            configuration: .test,
            stub: StubTransport(always: .response(status: 404, headers: ["Content-Type": "text/plain"], body: "{}")))
        #expect(await code { () throws(RequestError) in try await other.send(Everything()) } == .schemaMismatch)
    }

    @Test func aHierarchyIsStartedAsOneType() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = (0..<2).map { _ in Outcome<Response>() }
        let requests: [BaseRequest] = [ItemRequest(id: 1), Removal(id: 2)]
        for (request, outcome) in zip(requests, outcomes) { agent.start(request, completion: outcome.take) }
        await stub.waitForHeld(2)
        agent.cancelAll(tagged: "shop")
        for outcome in outcomes { #expect(await outcome.code == .cancelled) }
    }

    /// A requirement with a default that the base class does not declare would compile, but no subclass could override
    /// it.
    @Test func noRequirementIsLeftOut() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Sources/Ferry/Request")
        let protocolText = try String(contentsOf: sources.appending(path: "Request.swift"), encoding: .utf8)
        let baseText = try String(contentsOf: sources.appending(path: "BaseRequest.swift"), encoding: .utf8)
        let required = members(of: protocolText, after: "")
        #expect(required.count >= 33)
        #expect(required.isSubset(of: members(of: baseText, after: "open ")))
    }

    private func members(of text: String, after word: String) -> Set<String> {
        var names: Set<String> = []
        for line in text.split(separator: "\n") {
            for keyword in ["var ", "func "] where line.hasPrefix("    \(word)\(keyword)") {
                let rest = line.dropFirst(4 + word.count + keyword.count)
                names.insert(String(rest.prefix { $0.isLetter || $0.isNumber }))
            }
        }
        return names
    }
}

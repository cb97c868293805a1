import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Prebuilt requests of the application.
@Suite struct PrebuiltRequestTests {
    private struct Own: Request {
        let prebuiltRequest: OutgoingRequest?
        var path = "/ignored"
        var baseURL: String? = "http://ignored"
        var usesCDN = true
        var method = HTTPMethod.delete
        var headers: Headers = ["X-Ignored": "1"]
        var arguments: Arguments = ["ignored": 1]
        var body: RequestBody? = .string("ignored")
        var authorization: Authorization? = .bearer("ignored")
        var priority = RequestPriority.high
        var timeouts: Timeouts? = Timeouts(connect: .seconds(2), idle: nil)
        var deadline: Duration? = .seconds(3600)
        var statusValidation: StatusValidation?
        var tag: String? = "prebuilt"
        var book: Logbook?

        init(_ prebuilt: OutgoingRequest) { prebuiltRequest = prebuilt }

        func completionPreprocessor(_ reply: Reply<Response>) { book?.note("completionPreprocessor") }
        func failurePreprocessor(_ error: RequestError) { book?.note("failurePreprocessor") }
        func willDeliver(_ result: Result<Reply<Response>, RequestError>) { book?.note("willDeliver") }
    }

    private struct Append: URLFilter {
        func filter(_ path: String, of request: any Request) -> String { path + "/filtered" }
    }

    private var configuration: NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "http://base", headers: ["X-Common": "1"])
        configuration.urlFilters = [Append()]
        return configuration
    }

    private func seen(_ request: Own) async throws -> StubTransport.Request {
        let stub = StubTransport(always: .response())
        try await NetworkAgent(configuration: configuration, stub: stub).send(request)
        return try #require(stub.requests.first)
    }

    private func refusal(_ prebuilt: OutgoingRequest) async -> RequestError.Code? {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        defer { #expect(stub.requests.isEmpty) }
        return await code { () throws(RequestError) in try await agent.send(Own(prebuilt)) }
    }

    @Test func whatTheMembersDescribeIsPassedBy() async throws {
        let request = try await seen(Own(OutgoingRequest(url: "http://other/y?z=1")))
        #expect(request.url == "http://other/y?z=1")
        #expect(request.method == .get)
        #expect(request.headers.isEmpty)
        #expect(!request.hasBody)
    }

    @Test func allOfItIsSent() async throws {
        let prebuilt = OutgoingRequest(
            method: "PURGE", url: "http://other/y", headers: ["X-A": "1", "X-A": "2"], body: .string("ü"))
        let request = try await seen(Own(prebuilt))
        #expect(request.method == "PURGE")
        #expect(request.headers == ["X-A": "1", "X-A": "2", "Content-Type": "text/plain; charset=utf-8"])
        #expect(request.text == "ü")
    }

    @Test func priorityAndTimeoutsHold() async throws {
        let request = try await seen(Own(OutgoingRequest(url: "http://other/y")))
        #expect(request.priority == .high)
        #expect(request.timeouts.connect == 2000 && request.timeouts.idle == nil)
        #expect(request.timeouts.deadline == 3_600_000)
    }

    @Test func itsOwnMethodSaysWhetherItMayBeSentTwice() async throws {
        #expect(try await seen(Own(OutgoingRequest(url: "http://other/y"))).isIdempotent)
        #expect(try await !seen(Own(OutgoingRequest(method: .post, url: "http://other/y"))).isIdempotent)
    }

    @Test func credentialsInItsURLBecomeAHeader() async throws {
        let request = try await seen(Own(OutgoingRequest(url: "http://Aladdin:open%20sesame@other/y")))
        #expect(request.url == "http://other/y")
        #expect(request.headers == ["Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])
        let own = try await seen(Own(OutgoingRequest(url: "http://a:b@other/y", headers: ["authorization": "mine"])))
        #expect(own.headers == ["authorization": "mine"])
    }

    @Test func emptyBodiesAreAnnounced() async throws {
        let request = try await seen(Own(OutgoingRequest(method: .post, url: "http://other/y")))
        #expect(request.hasBody && request.body.isEmpty && request.headers.isEmpty)
    }

    @Test func validationAndHooksHold() async {
        let stub = StubTransport { $0.url.hasSuffix("bad") ? .response(status: 404) : .response() }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let book = Logbook()
        var good = Own(OutgoingRequest(url: "http://other/good"))
        good.book = book
        #expect(await code { () throws(RequestError) in try await agent.send(good) } == nil)
        var bad = Own(OutgoingRequest(url: "http://other/bad"))
        bad.book = book
        #expect(await code { () throws(RequestError) in try await agent.send(bad) } == .invalidStatusCode(404))
        bad.statusValidation = .codes([404])
        #expect(await code { () throws(RequestError) in try await agent.send(bad) } == nil)
        #expect(
            book.events == [
                "completionPreprocessor", "willDeliver", "failurePreprocessor", "willDeliver",
                "completionPreprocessor", "willDeliver",
            ])
    }

    @Test func itsTagAndItsMethodAreKnown() async {
        struct Look: RequestObserver {
            let seen: @Sendable (RunInfo) -> Void
            func willStart(_ run: RunInfo) { seen(run) }
        }
        let book = Logbook()
        var configuration = configuration
        configuration.observers = [Look { book.note("\($0.method?.rawValue ?? "") \($0.url) \($0.tag ?? "")") }]
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcome = Outcome<Response>()
        agent.start(Own(OutgoingRequest(method: .patch, url: "http://a:b@other/y")), completion: outcome.take)
        agent.cancelAll(tagged: "prebuilt")
        #expect(await outcome.code == .cancelled)
        #expect(book.events == ["PATCH http://other/y prebuilt"])
    }

    @Test func redirectsOfItAreFollowed() async throws {
        let stub = StubTransport { $0.number == 1 ? .response(status: 303, headers: ["Location": "/z"]) : .response() }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let prebuilt = OutgoingRequest(method: .post, url: "http://other/y", headers: ["X-A": "1"], body: .string("b"))
        #expect(try await agent.send(Own(prebuilt)).url == "http://other/z")
        let last = try #require(stub.requests.last)
        #expect(last.method == .get && !last.hasBody && last.headers == ["X-A": "1"])
    }

    @Test func whatCannotBeSentIsRefused() async {
        #expect(await refusal(OutgoingRequest(url: "/relative")) == .unsupportedScheme)
        #expect(await refusal(OutgoingRequest(url: "")) == .invalidURL)
        #expect(await refusal(OutgoingRequest(url: "file:///etc/passwd")) == .unsupportedScheme)
        #expect(await refusal(OutgoingRequest(url: "http://h/a b")) == .invalidURL)
        #expect(await refusal(OutgoingRequest(method: "A B", url: "http://h")) == .invalidRequest(.method))
        let headers: [(Headers, RequestError.Code)] = [
            (["X": "a\r\nEvil: 1"], .invalidRequest(.headerValue)), (["X\n": "a"], .invalidRequest(.headerName)),
            (["Content-Length": "7"], .invalidRequest(.framing)),
            (["Transfer-Encoding": "chunked"], .invalidRequest(.framing)),
        ]
        for (headers, expected) in headers {
            #expect(await refusal(OutgoingRequest(url: "http://h", headers: headers)) == expected)
        }
        #expect(
            await refusal(OutgoingRequest(method: .post, url: "http://h", body: .json(Double.nan)))
                == .invalidRequest(.body))
    }
}

import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// An application's own settings, as a refinement of the protocol.
private protocol ShopRequest: Request {
    var item: Int { get }
}

extension ShopRequest {
    var baseURL: String? { "http://shop/v1" }
    var headers: Headers { ["X-Shop": "1"] }
    var path: String { "/items/\(item)" }
}

private struct Buy: ShopRequest {
    let item: Int
    var method: HTTPMethod { .post }
}

private final class Look: ShopRequest {
    let item: Int
    let headers: Headers
    init(item: Int) {
        self.item = item
        headers = ["X-Look": "1"]
    }
}

private class Base: Request, @unchecked Sendable {
    var path: String { "/base" }
    var method: HTTPMethod { .get }
}

private final class Derived: Base, @unchecked Sendable {
    override var path: String { "/derived" }
    override var method: HTTPMethod { .put }
}

@Suite struct RequestKindsTests {
    private func seen(_ request: some Request) async throws -> StubTransport.Request {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://h"), stub: stub)
        try await agent.send(request)
        return try #require(stub.requests.first)
    }

    @Test func refinementsShareSettings() async throws {
        let request = try await seen(Buy(item: 7))
        #expect(request.url == "http://shop/v1/items/7")
        #expect(request.method == .post)
        #expect(request.headers["x-shop"] == "1")
    }

    @Test func finalClassesAreRequests() async throws {
        let request = try await seen(Look(item: 8))
        #expect(request.url == "http://shop/v1/items/8")
        #expect(request.headers == ["X-Look": "1"])
    }

    @Test func subclassesReplaceWhatTheirBaseDeclares() async throws {
        let request = try await seen(Derived())
        #expect(request.url == "http://h/derived")
        #expect(request.method == .put)
    }

    @Test func existentialsAreSentToo() async throws {
        let requests: [any Request<Response>] = [Buy(item: 1), Look(item: 2), Derived()]
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://h"), stub: stub)
        for request in requests { try await agent.send(request) }
        #expect(stub.requests.map(\.url) == ["http://shop/v1/items/1", "http://shop/v1/items/2", "http://h/derived"])
    }
}

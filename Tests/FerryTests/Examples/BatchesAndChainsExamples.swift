import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The code of the article "Batches and chains".
@Suite struct BatchesAndChainsExamples {
    struct Member: Decodable, Sendable {
        let id: Int
        var nick = "kim"
    }

    struct Receipt: Decodable, Sendable, Equatable {
        let total: Int
    }

    struct Listing: Decodable, Sendable {
        let items: [String]
        let isLast: Bool
    }

    struct SignUp: Request {
        typealias Value = Member
        let name: String
        var path: String { "/members" }
        var method: HTTPMethod { .post }
        var arguments: Arguments { ["name": .string(name)] }
    }

    struct Profile: Request {
        typealias Value = Member
        let id: Int
        init(of id: Int) { self.id = id }
        var path: String { "/members/\(id)" }
    }

    struct Orders: Request {
        typealias Value = [Int]
        let id: Int
        init(of id: Int) { self.id = id }
        var path: String { "/members/\(id)/orders" }
    }

    struct Pay: Request {
        typealias Value = Receipt
        let profile: Member
        let orders: [Int]
        var path: String { "/payments" }
        var method: HTTPMethod { .post }
        var body: RequestBody? { .json(orders) }
    }

    struct Page: Request {
        typealias Value = Listing
        let number: Int
        var path: String { "/pages/\(number)" }
    }

    func receipt(for name: String, by agent: NetworkAgent) async throws(RequestError) -> Receipt {
        try await agent.send(
            ChainRequest(SignUp(name: name))
                .then { BatchRequest(Profile(of: $0.id), Orders(of: $0.id)) }
                .then { profile, orders in Pay(profile: profile, orders: orders) })
    }

    func pages(from number: Int = 1, after soFar: [String] = []) -> ChainRequest<[String]> {
        ChainRequest(Page(number: number)).then { page in
            let all = soFar + page.items
            return page.isLast ? ChainRequest(value: all) : pages(from: number + 1, after: all)
        }
    }

    private func stub() -> StubTransport {
        StubTransport { request in
            switch request.url.dropFirst("http://h".count) {
            case "/members": .response(body: #"{"id": 7, "nick": "kim"}"#)
            case "/members/7", "/members/8": .response(body: #"{"id": 7, "nick": "kim"}"#)
            case "/members/7/orders": .response(body: "[1, 2]")
            case "/payments": .response(body: #"{"total": 3}"#)
            case "/pages/1": .response(body: #"{"items": ["a"], "isLast": false}"#)
            case "/pages/2": .response(body: #"{"items": ["b"], "isLast": true}"#)
            default: .response(status: 404)
            }
        }
    }

    @Test func oneThenTwoThenOne() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub())
        #expect(try await receipt(for: "kim", by: agent) == Receipt(total: 3))
        #expect(try await agent.send(pages()) == ["a", "b"])
        await agent.shutdown()
    }

    @Test func batchesOfTuplesAndArrays() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub())
        let ids = [7, 8]
        let (profile, orders) = try await agent.send(batch: Profile(of: 7), Orders(of: 7))
        let profiles = try await agent.send(batch: ids.map { Profile(of: $0) }, atMost: 8)
        #expect(profile.nick == "kim" && orders == [1, 2] && profiles.count == 2)
        for result in try await agent.send(batch: ids.map { Profile(of: $0) }, .collectAll) {
            switch result {
            case .success(let profile): print(profile.nick)
            case .failure(let error): print(error.code)
            }
        }
        let task = agent.start(
            BatchRequest(ids.map { Profile(of: $0) }, atMost: 8).tagged("profiles"),
            progress: { print("\($0.finished) of \($0.total)") }
        ) { result in
            if case .success(let profiles) = result { print(profiles.count) }
        }
        task.cancel()
        await agent.shutdown()
        #expect(task.state.isEnd)
    }
}

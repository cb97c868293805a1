import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Describing requests".
@Suite struct DescribingRequestsExamples {
    struct Rename: Request {
        typealias Value = Void  // no value: only success matters
        let id: Int
        let nick: String
        var path: String { "/users/\(id)" }
        var method: HTTPMethod { .patch }
        var arguments: Arguments { ["nick": .string(nick), "notify": true] }
        var argumentEncoding: ArgumentEncoding { .json }
        var timeouts: Timeouts? { Timeouts(connect: .seconds(2), total: .seconds(10)) }
        var statusValidation: StatusValidation? { .codes([200, 204]) }
        var tag: String? { "profile" }
    }

    struct Quota: Request {
        typealias Value = Int
        var path: String { "/quota" }

        func value(from response: Response) throws -> Int {
            guard let left = response.headers["X-Quota-Left"].flatMap({ Int($0) }) else {
                throw RequestError(.decoding, message: "the response has no quota")
            }
            return left
        }
    }

    class AccountRequest: BaseRequest, @unchecked Sendable {
        override var baseURL: String? { "https://accounts.example.com" }
        override var authorization: Authorization? { .bearer("token") }
    }

    final class CloseAccount: AccountRequest, @unchecked Sendable {
        let id: Int
        init(id: Int) { self.id = id }
        override var path: String { "/accounts/\(id)" }
        override var method: HTTPMethod { .delete }
    }

    struct SignedUpload: Request {
        let signedURL: String
        let file: String
        var path: String { "" }
        var prebuiltRequest: OutgoingRequest? {
            OutgoingRequest(method: .put, url: signedURL, headers: ["X-Kind": "photo"], body: .file(file))
        }
    }

    @Test func whatTheySayIsWhatIsSent() async throws {
        let stub = StubTransport { request in
            switch request.url {
            case "http://h/quota": .response(headers: ["X-Quota-Left": "7"])
            case "https://store.example.com/v2/items": .response(body: #"["a"]"#)
            default: .response(status: 204)
            }
        }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        try await agent.send(Rename(id: 7, nick: "kim"))
        #expect(stub.requests.last?.text == #"{"nick":"kim","notify":true}"#)
        #expect(try await agent.send(Quota()).value == 7)
        #expect(try await agent.send(Items()).value == ["a"])
        #expect(stub.requests.last?.headers["X-Store"] == "7")
        try await agent.send(CloseAccount(id: 7))
        #expect(stub.requests.last?.url == "https://accounts.example.com/accounts/7")
        #expect(stub.requests.last?.headers["Authorization"] == "Bearer token")
        await agent.shutdown()
    }

    @Test func aCompleteRequestPassesTheBaseBy() throws {
        let request = SignedUpload(signedURL: "https://store.example.com/x?s=1", file: "/nonexistent")
        #expect(request.prebuiltRequest?.method == .put && request.prebuiltRequest?.headers["X-Kind"] == "photo")
    }
}

protocol StoreRequest: Request {}

extension StoreRequest {
    var baseURL: String? { "https://store.example.com/v2" }
    var headers: Headers { ["X-Store": "7"] }
    var timeouts: Timeouts? { Timeouts(total: .seconds(5)) }
}

struct Items: StoreRequest {
    typealias Value = [String]
    var path: String { "/items" }
}

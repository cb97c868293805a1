import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The code of the article "Porting from YTKNetwork".
@Suite struct PortingFromYTKNetworkExamples {
    class ShopBase: BaseRequest, @unchecked Sendable {
        override var headers: Headers { ["X-Shop": "7"] }  // requestHeaderFieldValueDictionary
        override var timeouts: Timeouts? { Timeouts(idle: .seconds(30)) }  // requestTimeoutInterval
    }

    final class RegisterRequest: ShopBase, @unchecked Sendable {
        let user: String
        init(user: String) { self.user = user }

        override var path: String { "/register" }  // requestUrl
        override var method: HTTPMethod { .post }  // requestMethod
        override var arguments: Arguments { ["user": .string(user)] }  // requestArgument
    }

    final class UserList: ShopBase, @unchecked Sendable {
        // @[@{ @"userId": [NSNumber class], @"nick": [NSString class] }]
        private static let schema: JSONSchema = [["userId": .integer, "nick": .string.nullable]]
        override var path: String { "/users" }
        override var jsonSchema: JSONSchema? { Self.schema }  // jsonValidator
    }

    private func starts(_ agent: NetworkAgent) {
        agent.start(RegisterRequest(user: "kim")) { result in
            switch result {
            case .success(let reply): print(reply.text)  // responseString
            case .failure(let error): print(error)
            }
        }
    }

    @Test func theHierarchySaysWhatIsSent() async throws {
        let stub = StubTransport(always: .response(body: "ok"))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        starts(agent)
        await agent.shutdown(grace: .seconds(60))
        let seen = try #require(stub.requests.first)
        #expect(seen.method == .post && seen.text == "user=kim" && seen.headers["X-Shop"] == "7")
    }

    @Test(arguments: [#"[{"userId": 1, "nick": null}]"#: true, #"[{"userId": "1", "nick": "kim"}]"#: false])
    func theValidatorIsASchema(_ body: String, _ fits: Bool) async {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response(body: body)))
        let found = await code { () throws(RequestError) in try await agent.send(UserList()) }
        #expect(found == (fits ? nil : .schemaMismatch))
    }
}

import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The parts of a request that reach the server.
@Suite(.timeLimit(.minutes(2))) struct NetworkRequestTests {
    /// Sends by await and by closure, and returns each request as the server received it.
    private func sent<R: Request>(
        _ request: R, base: String = "", configure: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> LoopbackRequest {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL + base)
        configure(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(request)
        let outcome = Outcome<R.Value>()
        agent.start(request, completion: outcome.take)
        _ = try await outcome.result.get()
        await agent.shutdown()
        let requests = server.requests
        #expect(requests.count == 2)
        #expect(requests[0] == requests[1])
        return requests[0]
    }

    @Test(arguments: [HTTPMethod.get, .head, .post, .put, .patch, .delete, .options, "PURGE", "X-Y", "get"])
    func methodsArriveAsTheyAreWritten(method: HTTPMethod) async throws {
        let request = try await sent(Full(path: "/header", method: method))
        #expect(request.method == method.rawValue)
        #expect(request.target == "/header")
        #expect(request.body.isEmpty)
        let announces: Set<HTTPMethod> = [.post, .put, .patch]
        #expect(request.headers.values(of: "Content-Length") == (announces.contains(method) ? ["0"] : []))
        #expect(request.headers["Content-Type"] == nil)
        #expect(request.headers["Expect"] == nil)
    }

    @Test func headersOnTheWireAreTheseAndNoOthers() async throws {
        let plain = try await sent(Get("/hello"))
        #expect(plain.headers.fields.map(\.name) == ["Host", "User-Agent", "Accept-Encoding"])
        #expect(plain.headers["User-Agent"] == "Ferry")
        #expect(plain.headers["Accept-Encoding"] == "gzip, deflate")
        let bare = try await sent(Get("/hello")) {
            $0.userAgent = nil
            $0.acceptedEncodings = []
        }
        #expect(bare.headers.fields.map(\.name) == ["Host"])
    }

    @Test func ownFieldsWinKeepTheirOrderAndComeTwice() async throws {
        let request = try await sent(
            Full(
                path: "/hello", headers: ["B": "1", "a": "2", "B": "3", "Empty": "", "user-agent": "mine", "X": "own"])
        ) { $0.headers = ["X": "default", "Y": "default"] }
        #expect(request.headers.values(of: "B") == ["1", "3"])
        #expect(request.headers["a"] == "2")
        #expect(request.headers["Empty"] == "")
        #expect(request.headers.values(of: "User-Agent") == ["mine"])
        #expect(request.headers.values(of: "X") == ["own"])
        #expect(request.headers.values(of: "Y") == ["default"])
        let names = request.headers.fields.map(\.name).filter { ["B", "a", "Empty", "X"].contains($0) }
        #expect(names == ["B", "a", "B", "Empty", "X"])
    }

    @Test func argumentsGoWhereTheyBelong() async throws {
        let arguments: Arguments = ["b": ["x", "y"], "a": 1, "c": ["k": nil], "d": "ä &=", "e": true]
        let encoded = "a=1&b%5B%5D=x&b%5B%5D=y&c%5Bk%5D&d=%C3%A4%20%26%3D&e=true"
        for method: HTTPMethod in [.get, .delete, .head] {
            let request = try await sent(Full(path: "/hello?z=0", method: method, arguments: arguments))
            #expect(request.query == "z=0&" + encoded)
            #expect(request.body.isEmpty)
        }
        for method: HTTPMethod in [.post, .put, .patch, "MAKE"] {
            let request = try await sent(Full(path: "/hello", method: method, arguments: arguments))
            #expect(request.query == nil)
            #expect(request.text == encoded)
            #expect(request.headers["Content-Type"] == "application/x-www-form-urlencoded")
            #expect(request.headers["Content-Length"] == String(encoded.utf8.count))
        }
        let json = try await sent(Full(path: "/hello", method: .post, arguments: arguments, argumentEncoding: .json))
        #expect(json.text == #"{"a":1,"b":["x","y"],"c":{"k":null},"d":"ä &=","e":true}"#)
        #expect(json.headers["Content-Type"] == "application/json")
        let query = try await sent(Full(path: "/hello", method: .post, arguments: ["a": 1], argumentEncoding: .query))
        #expect(query.query == "a=1")
        #expect(query.headers["Content-Length"] == "0")
    }

    @Test func bodiesArriveByteForByte() async throws {
        let bytes = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let raw = try await sent(Full(path: "/upload", method: .post, body: .bytes(bytes)))
        #expect(raw.body == bytes)
        #expect(raw.headers["Content-Type"] == nil)
        let data = try await sent(Full(path: "/upload", method: .put, body: .data(Data(bytes), contentType: "a/b")))
        #expect(data.body == bytes)
        #expect(data.headers["Content-Type"] == "a/b")
        let text = try await sent(Full(path: "/upload", method: .patch, body: .string("häj")))
        #expect(text.text == "häj")
        let json = try await sent(Full(path: "/upload", method: .delete, body: .json(["nick": "kim"])))
        #expect(json.text == #"{"nick":"kim"}"#)
        let get = try await sent(Full(path: "/upload", method: .get, body: .string("odd")))
        #expect(get.method == "GET")
        #expect(get.text == "odd")
    }

    @Test func largeBodiesArriveWhole() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let bytes = [UInt8](repeating: 0x61, count: 20_000_000)
        let reply = try await agent.send(Full(path: "/upload", method: .put, body: .bytes(bytes)))
        #expect(reply.text.contains("\"bytes\":20000000"))
        let echo = try await agent.send(Full(path: "/echo/body", method: .post, body: .bytes(bytes)))
        #expect(echo.bytes == bytes)
        await agent.shutdown()
    }

    @Test func credentialsAreSentWithoutBeingAskedFor() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        let route = "/basic-auth/kim/p:%C3%A4ss"
        #expect(
            await code { () throws(RequestError) in try await agent.send(Get(server.baseURL + route)) }
                == .invalidStatusCode(401))
        let own = Full(path: server.baseURL + route, authorization: .basic("kim", "p:äss"))
        #expect(try await agent.send(own).status == 200)
        let inURL = server.baseURL.replacing("://", with: "://kim:p%3A%C3%A4ss@") + route
        #expect(try await agent.send(Get(inURL)).status == 200)
        let outcome = Outcome<Response>()
        agent.start(Get(inURL), completion: outcome.take)
        #expect(try await outcome.result.get().url == server.baseURL + route)
        #expect(server.requests.allSatisfy { !$0.target.contains("@") && $0.headers["Host"]?.contains("@") == false })
        let withBase = NetworkAgent(
            configuration: .init(baseURL: server.baseURL.replacing("://", with: "://kim:p%3A%C3%A4ss@")))
        #expect(try await withBase.send(Get(route)).status == 200)
        #expect(
            try await withBase.send(Full(path: route, authorization: .basic("a", "b"), statusValidation: .any)).status
                == 401)
        await agent.shutdown()
        await withBase.shutdown()
    }

    @Test(arguments: [
        ("/v1", "foo", "/v1/foo"), ("/v1", "/foo", "/v1/foo"), ("/v1/", "/foo", "/v1/foo"), ("", "", "/"),
        ("/v1", "", "/v1"),
        ("/v1", "/ä b", "/v1/%C3%A4%20b"), ("/v1", "/a%2Fb", "/v1/a%2Fb"), ("/v1", "/../../x", "/v1/x"),
        ("/v1?k=1", "/x?y=2", "/v1/x?k=1&y=2"), ("", "/x#part", "/x"), ("", "/x?a=b%20c&d", "/x?a=b%20c&d"),
        ("", "//x", "//x"), ("", "/a;b=c,d@e:f!$'()*+", "/a;b=c,d@e:f!$'()*+"), ("", "/100%", "/100%25"),
    ])
    func targetsOnTheWire(base: String, path: String, target: String) async throws {
        var request = HTTPRequest(.get, path)
        request.statusValidation = .any
        #expect(try await sent(request, base: base).target == target)
    }
}

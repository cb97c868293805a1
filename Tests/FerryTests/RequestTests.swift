import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

@Suite struct RequestTests {
    private func seen(
        _ request: some Request, _ configuration: NetworkConfiguration = .test
    ) async throws -> StubTransport.Request {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        _ = try await agent.send(request)
        return try #require(stub.requests.first)
    }

    private func refusal(_ request: some Request, _ configuration: NetworkConfiguration = .test) async -> RequestError?
    {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        defer { #expect(stub.requests.isEmpty) }
        do throws(RequestError) { _ = try await agent.send(request) } catch { return error }
        return nil
    }

    @Test func defaultsSayAPlainGet() async throws {
        let request = try await seen(Get())
        #expect(request.url == "http://h/x")
        #expect(request.method == .get)
        #expect(request.headers.isEmpty)
        #expect(!request.hasBody)
        #expect(request.priority == .normal)
        #expect(request.isIdempotent)
        #expect(request.timeouts.idle == 60_000)
        #expect(request.timeouts.connect == nil && request.timeouts.total == nil && request.timeouts.deadline == nil)
    }

    @Test func argumentsGoWhereTheMethodSays() async throws {
        let arguments: Arguments = ["a": 1]
        for method in [HTTPMethod.get, .head, .delete] {
            let request = try await seen(Full(path: "/x?b=2#f", method: method, arguments: arguments))
            #expect(request.url == "http://h/x?b=2&a=1#f")
            #expect(!request.hasBody)
        }
        for method in [HTTPMethod.post, .put, .patch, .options, "PURGE"] {
            let request = try await seen(Full(method: method, arguments: arguments))
            #expect(request.url == "http://h/x")
            #expect(request.text == "a=1")
            #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
        }
    }

    @Test func whatHTTPHasNoPlaceForIsRefused() async {
        for body in [RequestBody.string("text"), .bytes([]), .stream { Pieces(pieces: []) }] {
            let error = await refusal(Full(method: .head, body: body))
            #expect(error?.code == .invalidRequest(.framing) && error?.message.contains("HEAD") == true)
        }
        let form = await refusal(Full(method: .head, arguments: ["a": 1], argumentEncoding: .form))
        #expect(form?.code == .invalidRequest(.framing))
        let connect = await refusal(Full(method: "CONNECT"))
        #expect(connect?.code == .invalidRequest(.method) && connect?.message.contains("CONNECT") == true)
    }

    @Test func encodingsCanBeForced() async throws {
        let query = try await seen(Full(method: .post, arguments: ["a": 1], argumentEncoding: .query))
        #expect(query.url == "http://h/x?a=1")
        #expect(query.hasBody && query.body.isEmpty)
        let form = try await seen(Full(method: .get, arguments: ["a": 1], argumentEncoding: .form))
        #expect(form.text == "a=1")
        let json = try await seen(Full(method: .post, arguments: ["a": [1, nil]], argumentEncoding: .json))
        #expect(json.text == #"{"a":[1,null]}"#)
        #expect(json.headers["Content-Type"] == "application/json")
    }

    @Test func emptyBodiesAreAnnounced() async throws {
        for method in [HTTPMethod.post, .put, .patch] {
            let request = try await seen(Full(method: method))
            #expect(request.hasBody && request.body.isEmpty && request.headers.isEmpty)
        }
    }

    @Test func bodiesOfEveryKindAreSent() async throws {
        let data = try await seen(Full(method: .put, body: .data(Data([1, 2]))))
        #expect(data.body == [1, 2] && data.headers.isEmpty)
        let bytes = try await seen(Full(method: .put, body: .bytes([3], contentType: "image/png")))
        #expect(bytes.body == [3] && bytes.headers["Content-Type"] == "image/png")
        let text = try await seen(Full(method: .get, body: .string("ü")))
        #expect(text.text == "ü" && text.headers["Content-Type"] == "text/plain; charset=utf-8")
        let json = try await seen(Full(method: .post, body: .json(["a": 1])))
        #expect(json.text == #"{"a":1}"# && json.headers["Content-Type"] == "application/json")
        let both = try await seen(Full(method: .post, arguments: ["a": 1], body: .string("wins")))
        #expect(both.text == "wins" && both.url == "http://h/x")
        let own = try await seen(Full(method: .post, headers: ["content-type": "x/y"], body: .json(1)))
        #expect(own.headers.values(of: "Content-Type") == ["x/y"])
    }

    @Test func aBodyIsEncodedByItsEncoder() async throws {
        struct Order: Encodable {
            let itemName = "a/b"
            let orderedAt = Date(timeIntervalSince1970: 7)
        }
        var encoder = FerryJSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .secondsSince1970
        encoder.outputFormatting = .withoutEscapingSlashes
        let own = try await seen(Full(method: .post, body: .json(Order(), encoder: encoder)))
        #expect(own.text == #"{"item_name":"a/b","ordered_at":7}"#)
        #expect(own.headers["Content-Type"] == "application/json")
        let plain = try await seen(Full(method: .post, body: .json(Order())))
        #expect(plain.text == #"{"itemName":"a\/b","orderedAt":-978307193}"#)
    }

    @Test func whatIsNotJSONIsRefused() async {
        #expect(
            await refusal(Full(method: .post, arguments: ["a": .number(.nan)], argumentEncoding: .json))?.code
                == .invalidRequest(.arguments))
        let error = await refusal(Full(method: .post, body: .json(Double.nan)))
        #expect(error?.code == .invalidRequest(.body))
        #expect(error?.cause is EncodingError)
    }

    @Test func headersOfTheRequestWin() async throws {
        var configuration = NetworkConfiguration.test
        configuration.headers = ["Accept": "a", "X-One": "1"]
        #expect(try await seen(Get(), configuration).headers == configuration.headers)
        let request = try await seen(Full(headers: ["accept": "b", "X-Two": "2", "X-Two": "3"]), configuration)
        #expect(request.headers == ["X-One": "1", "accept": "b", "X-Two": "2", "X-Two": "3"])
    }

    @Test func credentialsAreSentAtOnce() async throws {
        let basic = try await seen(Full(authorization: .basic("Aladdin", "open sesame")))
        #expect(basic.headers["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(try await seen(Full(authorization: .bearer("t"))).headers["Authorization"] == "Bearer t")
        let header = try await seen(Full(headers: ["authorization": "mine"], authorization: .bearer("t")))
        #expect(header.headers.values(of: "Authorization") == ["mine"])
        let url = try await seen(Get("http://Aladdin:open%20sesame@h/y"))
        #expect(url.url == "http://h/y")
        #expect(url.headers["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        let both = try await seen(Full(path: "http://a:b@h/y", authorization: .bearer("t")))
        #expect(both.headers.values(of: "Authorization") == ["Bearer t"])
        var configuration = NetworkConfiguration.test
        configuration.headers = ["Authorization": "common"]
        let replaced = try await seen(Full(authorization: .bearer("t")), configuration)
        #expect(replaced.headers.values(of: "Authorization") == ["Bearer t"])
    }

    /// Basic would send it as the user `a` (RFC 7617, 2).
    @Test func aColonInTheUserNameOfBasicIsRefused() async throws {
        let basic = Authorization.basic("a:b", "canary")
        for request in [Full(authorization: basic), Full(path: "http://a%3Ab:canary@h/y")] {
            let error = await refusal(request)
            #expect(error?.code == .invalidRequest && error?.phase == .preparing)
            #expect(error?.message.contains("colon") == true && error?.message.contains("canary") == false)
        }
        let own = try await seen(Full(headers: ["Authorization": "mine"], authorization: basic))
        #expect(own.headers.values(of: "Authorization") == ["mine"])
        let password = try await seen(Full(authorization: .basic("a", "b:c")))
        #expect(password.headers["Authorization"] == "Basic YTpiOmM=")
        #expect(basic != .basic("a", "b:canary") && "\(basic)" == "Basic ***")
    }

    @Test(arguments: ["a\r\nEvil: 1", "a\n", "a\0b"])
    func injectedHeadersAreRefused(_ value: String) async {
        #expect(await refusal(Full(headers: ["X": value]))?.code == .invalidRequest(.headerValue))
        #expect(await refusal(Full(authorization: .bearer(value)))?.code == .invalidRequest(.headerValue))
        #expect(await refusal(Full(headers: [value: "x"]))?.code == .invalidRequest(.headerName))
        #expect(await refusal(Full(method: HTTPMethod(value)))?.code == .invalidRequest(.method))
        #expect(await refusal(Full(path: value))?.code == .invalidURL)
        #expect(
            await refusal(Full(method: .post, body: .bytes([1], contentType: value)))?.code
                == .invalidRequest(.headerValue))
        var configuration = NetworkConfiguration.test
        configuration.headers = ["X": value]
        #expect(await refusal(Get(), configuration)?.code == .invalidRequest(.headerValue))
    }

    @Test func framingIsNotTheCallersToSay() async throws {
        let same = try await seen(Full(method: .post, headers: ["Content-Length": "2"], body: .bytes([1, 2])))
        #expect(same.headers.isEmpty)
        for headers: Headers in [["content-length": "3"], ["Content-Length": "x"], ["Transfer-Encoding": "chunked"]] {
            let error = await refusal(Full(method: .post, headers: headers, body: .bytes([1, 2])))
            #expect(error?.code == .invalidRequest(.framing))
        }
        #expect(await refusal(Full(headers: ["Transfer-Encoding": "chunked"]))?.code == .invalidRequest(.framing))
    }

    @Test func urlsAreRefusedWithTheirText() async {
        let broken = await refusal(Get("http://kim:canary@h:x/y"))
        #expect(broken?.code == .invalidURL)
        #expect(broken?.url == "http://h:x/y")
        #expect(broken?.phase == .preparing)
        let scheme = await refusal(Get("file:///etc/passwd"))
        #expect(scheme?.code == .unsupportedScheme)
        #expect(await refusal(Get("/x"), NetworkConfiguration())?.code == .unsupportedScheme)
        let base = await refusal(Get("/x"), NetworkConfiguration(baseURL: "http:// h"))
        #expect(base?.code == .invalidURL)
        #expect(base?.url == "http:// h")
        #expect(await refusal(Full(baseURL: "gopher://h"))?.code == .unsupportedScheme)
    }

    @Test func requestsReplaceTheBase() async throws {
        #expect(try await seen(Full(baseURL: "https://other/v2")).url == "https://other/v2/x")
        #expect(try await seen(Get("http://third/y")).url == "http://third/y")
        #expect(try await seen(Get("http://third/y"), NetworkConfiguration()).url == "http://third/y")
    }

    @Test func timeoutsAreRoundedUp() async throws {
        let timeouts = Timeouts(connect: .microseconds(1), idle: nil, total: .milliseconds(1500))
        let request = try await seen(Full(timeouts: timeouts, deadline: .seconds(3)))
        #expect(request.timeouts.connect == 1)
        #expect(request.timeouts.idle == nil)
        #expect(request.timeouts.total == 1500)
        #expect(request.timeouts.deadline == 3000)
        #expect(try await seen(Get()).timeouts.idle == 60_000)
        let configuration = NetworkConfiguration(
            baseURL: "http://h", timeouts: Timeouts(idle: .zero), deadline: .seconds(1_000_000_000))
        let clamped = try await seen(Get(), configuration).timeouts
        #expect(clamped.idle == 1)
        #expect(clamped.deadline == Int(UInt32.max))
    }
}

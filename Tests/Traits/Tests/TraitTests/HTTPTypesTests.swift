#if HTTPTypes
import Ferry
import FerryHTTPTypes
import FerryTesting
import HTTPTypes
import Testing

@Suite struct HTTPTypesTests {
    @Test func aRequestSurvivesTheConversionBothWays() throws {
        var request = HTTPTypes.HTTPRequest(method: .put, scheme: "http", authority: "h:81", path: "/a%20b?x=1&y=%2F")
        request.headerFields.append(HTTPField(name: .accept, value: "text/plain"))
        request.headerFields.append(HTTPField(name: .init("X-A")!, value: "1"))
        request.headerFields.append(HTTPField(name: .init("X-A")!, value: "2"))
        let outgoing = try #require(OutgoingRequest(request))
        #expect(outgoing.method == .put)
        #expect(outgoing.url == "http://h:81/a%20b?x=1&y=%2F")
        #expect(outgoing.headers.values(of: "x-a") == ["1", "2"])
        let made = HTTPTypes.HTTPRequest(outgoing)
        let back = try #require(made)
        #expect(back == request)
    }

    @Test func partsWithoutACounterpartAreOmitted() throws {
        let headers = Headers([.init(name: "not a token", value: "1"), .init(name: "ok", value: "2")])
        let outgoing = OutgoingRequest(url: "https://kim:secret@[::1]:8443#part", headers: headers)
        let made = HTTPTypes.HTTPRequest(outgoing)
        let request = try #require(made)
        #expect(request.authority == "[::1]:8443")
        #expect(request.path == "/")
        #expect(request.headerFields.map(\.name.rawName) == ["ok"])
        #expect(HTTPTypes.HTTPRequest(OutgoingRequest(url: "/only/a/path")) == nil)
        #expect(HTTPTypes.HTTPRequest(OutgoingRequest(method: "no token", url: "http://h/")) == nil)
        #expect(OutgoingRequest(HTTPTypes.HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/x")) == nil)
    }

    @Test func aRequestIsSentAndItsResponseConverted() async throws {
        let response = try await withLoopbackServer { server in
            server.handle("POST", "/x") { request in
                LoopbackResponse(
                    status: 201, headers: ["X-B": request.headers["X-A"] ?? ""], text: "made")
            }
            return try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
                var request = HTTPTypes.HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/x")
                request.headerFields[.init("X-A")!] = "7"
                request.headerFields[.contentLength] = "999"
                return try await agent.send(Ferry.HTTPRequest(request, body: .string("body"))).value
            }
        }
        let converted = HTTPTypes.HTTPResponse(response)
        #expect(converted.status == .created)
        #expect(converted.headerFields[HTTPField.Name("X-B")!] == "7")
        // And as a response of an interceptor.
        let answer = InterceptedResponse(converted, body: Array("made".utf8))
        #expect(answer.status == 201)
        #expect(answer.headers["x-b"] == "7")
        #expect(answer.body.count == 4)
        #expect(HTTPTypes.HTTPResponse(answer) == converted)
        #expect(HTTPTypes.HTTPResponse(InterceptedResponse(status: 99)) == nil)
    }
}
#endif

import Ferry
import Testing

/// Requests arrive unchanged, through nginx, at the upstream.
@Suite(.timeLimit(.minutes(2))) struct NginxUploadTests {
    @Test("method, header fields and body arrive", arguments: [HTTPMethod.post, .put, .patch, .delete])
    func upload(method: HTTPMethod) async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.echo(nginx.url("/echo?a=%C3%A4&b=1"), method, body: .string("Grüße"))
            request.headers = ["X-One": "1", "X-Two": "a, b"]
            let echo = try await agent.send(request).value
            #expect(echo.method == method.description)
            #expect(echo.target == "/echo?a=%C3%A4&b=1")
            #expect(echo["X-One"] == "1" && echo["X-Two"] == "a, b")
            #expect(echo["Content-Type"] == "text/plain; charset=utf-8")
            #expect(echo.length == 7 && echo.sha256 == sha256(Array("Grüße".utf8)))
        }
    }

    @Test("ten megabytes arrive unchanged")
    func large() async throws {
        let nginx = try Nginx.shared
        let bytes = Nginx.pattern(10 * 1024 * 1024)
        try await withAgent { agent in
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo"), .put, body: .bytes(bytes))).value
            #expect(echo.length == bytes.count && echo.sha256 == sha256(bytes))
        }
    }

    @Test("a missing body is announced as an empty one")
    func empty() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo"), .post)).value
            #expect(echo.length == 0 && echo["Content-Length"] == "0")
        }
    }

    @Test("a response that comes before the body was sent is delivered")
    func refusedEarly() async throws {
        let nginx = try Nginx.shared
        let bytes = Nginx.pattern(10 * 1024 * 1024)
        try await withAgent { agent in
            for _ in 0..<5 {
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(nginx.url("/limited"), .post, body: .bytes(bytes)))
                }
                #expect(error?.code == .invalidStatusCode(413), "\(error.map(String.init(describing:)) ?? "no error")")
            }
            let next = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
            #expect(next.text == "Hello, ferry")
        }
    }

    @Test("a response before the body is delivered even if the server then resets")
    func refusedAndReset() async throws {
        let upstream = try Upstream.shared
        let bytes = Nginx.pattern(20 * 1024 * 1024)
        try await withAgent { agent in
            for _ in 0..<5 {
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(upstream.url + "/refuse-upload", .post, body: .bytes(bytes)))
                }
                #expect(error?.code == .invalidStatusCode(413), "\(error.map(String.init(describing:)) ?? "no error")")
            }
        }
    }
}

import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Requests that are refused before any byte is sent (rows R42 to R47).
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RequestFaultTests {
    /// Refused during preparation, or by the core's own check, without any notification.
    private func expectRefusal(
        _ code: RequestError.Code, isURL: Bool = false, sourceLocation: SourceLocation = #_sourceLocation,
        setUp: (inout FaultSetup) -> Void
    ) async throws {
        try await expectFault(
            [], code, .preparing, processed: false, attempts: 0, received: 0, sourceLocation: sourceLocation,
            setUp: {
                $0.next = .otherServer
                setUp(&$0)
                $0.checksURL = !isURL
            }
        ) { server in
            #expect(server.connectionCount == 0, sourceLocation: sourceLocation)
            #expect(server.receivedByteCount == 0, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "R42: a header value that would break out of its line is refused",
        arguments: ["a\r\nEvil: 1", "a\rb", "a\nb", "\r\n", "a\0b", "a\r\n", "\na", "a\u{1}b", "a\u{7f}b"])
    func headerValue(value: String) async throws {
        try await expectRefusal(.invalidRequest(.headerValue)) { $0.probe.headers.append("X", "canary" + value) }
        try await expectRefusal(.invalidRequest(.headerValue)) {
            $0.configuration.headers = ["X": "canary" + value]
            $0.next = .nowhere
        }
        try await expectRefusal(.invalidRequest(.headerValue)) {
            $0.probe.headers = ["Authorization": "canary" + value]
        }
    }

    @Test(
        "R42: a header name that is no token is refused",
        arguments: ["a\r\nEvil", "a b", "a:", "", "a\0", "ü", "a\n", "(a)"])
    func headerName(name: String) async throws {
        try await expectRefusal(.invalidRequest(.headerName)) { $0.probe.headers.append(name, "canary") }
        try await expectRefusal(.invalidRequest(.headerName)) {
            $0.configuration.headers = [name: "canary"]
            $0.next = .nowhere
        }
    }

    @Test(
        "R42: a method that is no token is refused",
        arguments: ["GET / HTTP/1.1\r\nEvil: 1\r\n\r\n", "G T", "", "GET\0", "GET\n", "ü"])
    func method(word: String) async throws {
        try await expectRefusal(.invalidRequest(.method)) { $0.probe.method = HTTPMethod(word) }
    }

    @Test(
        "R42: a content type, a token and a credential that would break out are refused",
        arguments: ["a\r\nEvil: 1", "a\nb", "a\0b"])
    func ownValues(value: String) async throws {
        try await expectRefusal(.invalidRequest(.headerValue)) {
            $0.probe.method = .post
            $0.probe.body = .bytes([], contentType: value)
        }
        try await expectRefusal(.invalidRequest(.headerValue)) {
            $0.probe.headers = Headers()
            $0.probe.authorization = .bearer("canary" + value)
        }
        for authorization: Authorization in [.digest("canary" + value, "p"), .digest("u", "canary" + value)] {
            try await expectRefusal(.invalidRequest) {
                $0.probe.headers = Headers()
                $0.probe.authorization = authorization
            }
        }
    }

    @Test("R42: an agent's invalid User-Agent fails its runs", arguments: ["a\r\nEvil: 1", "a\nb", "a\0b", "a\u{1}"])
    func userAgent(value: String) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(userAgent: value))
        for request in [Get(server.baseURL), Get(server.baseURL + "/hello")] {
            let error = await fault { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .invalidRequest(.headerValue))
            let outcome = Outcome<Response>()
            agent.start(request, completion: outcome.take)
            #expect(await outcome.code == .invalidRequest(.headerValue))
        }
        #expect(server.connectionCount == 0)
        await agent.shutdown()
    }

    @Test("R42: any other value arrives at the server unchanged")
    func oddValues() async throws {
        let values = ["", "a\tb", "gr\u{fc}n", "a:b", "a;b", String(repeating: "x", count: 10_000), "\"q\"", "%0d%0a"]
        for value in values {
            try await expectAnswer(setUp: {
                $0.path = "/echo"
                $0.probe.headers.append("X-Odd", value)
            }) { _, server in
                #expect(server.requests[0].headers.values(of: "X-Odd") == [value])
            }
        }
    }

    @Test(
        "R44: a URL with a line break, a space or a NUL is invalid",
        arguments: [
            "http://127.0.0.1:1/a\r\nb?token=canary", "http://127.0.0.1:1/a b?token=canary", "http://127.0.0.1:1/a\0b",
            "http://canary:canary@127.0.0.1:1\r\n/", "http://127.0.0.1:1 /", " http://127.0.0.1:1/",
            "http://127.0.0.1:1/?token=canary\nb", "http://", "http:///x", "http://:80/", "http://[::1/",
            "http://h:99999/",
            "http://h:a/", "http://canary:canary@/", "http://canary\\@h/", "http:/h", "http:h", "http://h:80:90/",
        ])
    func badURL(url: String) async throws {
        let code: RequestError.Code = url.hasPrefix(" ") ? .unsupportedScheme : .invalidURL
        try await expectRefusal(code, isURL: true) { $0.probe.path = url }
    }

    @Test(
        "R44: a path with a control character is invalid, also with a base URL",
        arguments: ["/a\r\nb", "/a\0b", "\n", "/?a=\rb"])
    func badPath(path: String) async throws {
        try await expectRefusal(.invalidURL, isURL: true) {
            $0.configuration.baseURL = "http://canary:canary@127.0.0.1:1/v1"
            $0.probe.path = path
        }
    }

    @Test(
        "R44: an invalid base URL fails every request",
        arguments: ["http:// h", "http://h\r\n", "", "http://canary:canary@"])
    func badBase(base: String) async throws {
        try await expectRefusal(.invalidURL, isURL: true) {
            $0.configuration.baseURL = base
            $0.probe.path = "/x"
        }
    }

    @Test(
        "R45: other schemes, and a missing one, are refused",
        arguments: [
            "file:///etc/passwd", "gopher://127.0.0.1:1/x", "dict://127.0.0.1:1/d:x",
            "ftp://canary:canary@127.0.0.1:1/x",
            "FILE:///etc/passwd", "ws://127.0.0.1:1/", "httpx://127.0.0.1:1/", "h://h/", "//127.0.0.1:1/x",
            "127.0.0.1:1/x",
            "localhost/x", "javascript:alert(1)", "data:,x", "unix:///run/x", "scp://h/x", "smb://h/x",
        ])
    func otherScheme(url: String) async throws {
        try await expectRefusal(.unsupportedScheme, isURL: true) { $0.probe.path = url }
    }

    @Test("R45: a base URL with another scheme is refused", arguments: ["file:///etc", "ftp://h/", "h/v1"])
    func otherBaseScheme(base: String) async throws {
        try await expectRefusal(.unsupportedScheme, isURL: true) {
            $0.configuration.baseURL = base
            $0.probe.path = "/passwd"
        }
    }

    @Test(
        "R47: framing that does not match the body is refused",
        arguments: ["3", "5", "-4", "abc", "", "4, 4", "18446744073709551620"])
    func framing(length: String) async throws {
        for method: HTTPMethod in [.post, .put, .get] {
            try await expectRefusal(.invalidRequest(.framing)) {
                $0.probe.method = method
                $0.probe.body = .string("four")
                $0.probe.headers.append("Content-Length", length)
            }
        }
    }

    @Test("R47: a request must not set its transfer coding", arguments: [HTTPMethod.get, .post, .put])
    func transferEncoding(method: HTTPMethod) async throws {
        for value in ["chunked", "identity", ""] {
            try await expectRefusal(.invalidRequest(.framing)) {
                $0.probe.method = method
                $0.probe.headers.append("transfer-encoding", value)
            }
            try await expectRefusal(.invalidRequest(.framing)) {
                $0.probe.method = method
                $0.probe.body = .string("four")
                $0.probe.headers.append("Content-Length", "4")
                $0.probe.headers.append("Transfer-Encoding", value)
            }
            try await expectRefusal(.invalidRequest(.framing)) {
                $0.configuration.headers = ["Transfer-Encoding": value]
                $0.next = .nowhere
            }
        }
    }

    @Test("R47: a correct length is sent once")
    func rightLength() async throws {
        try await expectAnswer(setUp: {
            $0.path = "/echo"
            $0.probe.method = .post
            $0.probe.body = .string("four")
            $0.probe.headers.append("Content-Length", "4")
        }) { _, server in
            #expect(server.requests[0].headers.values(of: "Content-Length") == ["4"])
            #expect(server.requests[0].headers["Transfer-Encoding"] == nil)
            #expect(server.requests[0].text == "four")
        }
    }
}

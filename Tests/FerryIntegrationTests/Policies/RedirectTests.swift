import Ferry
import Testing

@testable import FerryTestSupport

/// nginx redirects, and the upstream reports what it received.
@Suite(.timeLimit(.minutes(2))) struct RedirectTests {
    @Test("301, 302 and 303 turn a POST into a GET without a body", arguments: [301, 302, 303])
    func becomesGet(status: Int) async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.echo(nginx.url("/\(status)"), .post, body: .string("text")))
            #expect(reply.value.method == "GET" && reply.value.length == 0)
            #expect(reply.value["Content-Type"] == nil && reply.value["Content-Length"] == nil)
            #expect(reply.redirects.map(\.status) == [status])
            #expect(reply.url == nginx.url("/echo?from=\(status)"))
        }
    }

    @Test("307 and 308 send method and body again", arguments: [307, 308])
    func staysPost(status: Int) async throws {
        let nginx = try Nginx.shared
        let bytes = Nginx.pattern(1024 * 1024)
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.echo(nginx.url("/\(status)"), .post, body: .bytes(bytes)))
            #expect(reply.value.method == "POST" && reply.value.sha256 == sha256(bytes))
            #expect(reply.redirects.map(\.status) == [status])
        }
    }

    @Test("a chain of relative and absolute redirects is followed over one connection")
    func chain() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/chain/1"))
            request.headers = ["Cookie": mark]
            let reply = try await agent.send(request)
            #expect(reply.text == "Hello, ferry" && reply.url == nginx.url("/hello.txt"))
            #expect(reply.redirects.map(\.status) == [302, 307, 301])
            #expect(reply.attempts == 4)
            let lines = try await eventually("four requests") {
                let lines = try await nginx.log(mark, count: 1)
                return lines.count == 4 ? lines : nil
            }
            #expect(lines.map(\.target) == ["/chain/1", "/chain/2", "/chain/3", "/hello.txt"])
            #expect(Set(lines.map(\.connection)).count == 1)
        }
    }

    @Test("a loop ends after the maximum number of redirects")
    func loop() async throws {
        let nginx = try Nginx(.init(upstream: Upstream.shared.port))
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/loop"))
            request.redirectPolicy = .follow(upTo: 5)
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .tooManyRedirects)
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
            #expect(try await nginx.log("hello", count: 1).count == 1)
            #expect(try await nginx.log("/loop", count: 6).count == 6)
        }
    }

    @Test("another origin gets no secrets, and the same one still gets them")
    func secrets() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.echo(nginx.url("/to-other?\(token())"))
            request.headers = [
                "Authorization": "Bearer canary", "Cookie": "canary=1", "X-Api-Key": "canary", "X-Plain": "kept",
            ]
            request.redirectPolicy = .follow(sensitiveHeaders: ["x-api-key"])
            let other = try await agent.send(request).value
            #expect(other["X-Plain"] == "kept")
            #expect(!"\(other.headers)".contains("canary"))
            request.path = nginx.url("/302")
            let same = try await agent.send(request).value
            #expect(same["Authorization"] == "Bearer canary" && same["Cookie"] == "canary=1")
            #expect(same["X-Api-Key"] == "canary")
        }
    }

    @Test("from https to http is followed only if allowed, and then without secrets")
    func downgrade() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(.trusting) { agent in
            var request = HTTPRequest.to(nginx.url("/to-http?\(mark)", .tls))
            request.headers = ["Cookie": "canary=1"]
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .redirectForbidden(.downgrade))
            request.redirectPolicy = .follow(allowsDowngrade: true)
            let reply = try await agent.send(request)
            #expect(reply.text == "Hello, ferry")
            let lines = try await nginx.log(mark, count: 3)
            #expect(lines.map { $0.target.prefix(8) } == ["/to-http", "/to-http", "/hello.t"])
            #expect(lines.map(\.cookie) == ["canary=1", "canary=1", ""])
        }
    }

    @Test("from http to https is followed")
    func upgrade() async throws {
        let nginx = try Nginx.shared
        try await withAgent(.trusting) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/to-https")))
            #expect(reply.text == "Hello, ferry" && reply.url == nginx.url("/hello.txt", .tls))
        }
    }

    @Test("a redirect to a file is not followed")
    func scheme() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/to-file")))
            }
            #expect(error?.code == .redirectForbidden(.scheme))
        }
    }

    @Test("without following, the redirect itself is the response")
    func notFollowed() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/302"))
            request.redirectPolicy = RedirectPolicy.none
            request.statusValidation = .any
            let reply = try await agent.send(request)
            #expect(reply.status == 302 && reply.redirects.isEmpty)
            #expect(reply.headers["Location"] == nginx.url("/echo?from=302"))
        }
    }
}

import FerryTesting
import FerryTransport
import Foundation
import Testing

/// The jar of a transport.
@Suite(.serialized, .timeLimit(.minutes(1))) struct CookieTests {
    private func withJar(
        loops: Int = 1, keeps: Bool = true, _ body: (Collector, LoopbackServer) async throws -> Void
    ) async throws {
        let server = try LoopbackServer()
        defer { server.stop() }
        server.handle("/set") { request in
            let cookies = (request.query ?? "").removingPercentEncoding ?? ""
            return LoopbackResponse(
                headers: LoopbackHeaders(
                    cookies.split(separator: "|").map { .init(name: "Set-Cookie", value: String($0)) }))
        }
        var configuration = TransportConfiguration()
        configuration.eventLoopCount = loops
        configuration.keepsCookies = keeps
        let collector = try Collector(configuration)
        defer { collector.transport.shutdown() }
        try await body(collector, server)
    }

    private func set(_ cookies: String...) -> String {
        let text = cookies.joined(separator: "|")
        return "/set?" + (text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
    }

    private func sent(_ server: LoopbackServer) -> [String] {
        server.requests.last?.headers.values(of: "Cookie") ?? []
    }

    @Test func withoutAJarNothingIsKept() async throws {
        try await withJar(keeps: false) { collector, server in
            _ = try await collector.get(server.baseURL + set("a=1"))
            collector.transport.setCookie(TransferCookie(name: "b", value: "2", domain: "127.0.0.1"))
            _ = try await collector.get(server.baseURL + "/hello")
            #expect(sent(server).isEmpty && collector.transport.cookies.isEmpty)
        }
    }

    @Test func whatIsSetIsSentAgainByThePathsRules() async throws {
        try await withJar { collector, server in
            _ = try await collector.get(
                server.baseURL + set("a=1", "b=2; Path=/hello", "c=3; Path=/other", "gone=4; Max-Age=0"))
            _ = try await collector.get(server.baseURL + "/hello")
            #expect(sent(server) == ["b=2; a=1"])
            _ = try await collector.get(server.baseURL + "/hello/../hello?x=%2F")
            #expect(server.requests.last?.target == "/hello/../hello?x=%2F")
            _ = try await collector.get(server.baseURL + "/otherwise")
            #expect(sent(server) == ["a=1"])
            _ = try await collector.get(server.baseURL + "/other/below")
            #expect(sent(server) == ["c=3; a=1"])
            // Another host gets none of them.
            _ = try await collector.get("http://localhost:\(server.port)/hello")
            #expect(sent(server).isEmpty)
        }
    }

    @Test func oneOfTheRequestsOwnStandsBesideThem() async throws {
        try await withJar { collector, server in
            let own = TransferRequest(url: server.baseURL + "/hello").with { $0.headers.append("cookie", "own=9; x=y") }
            _ = try await collector.run(own)
            #expect(sent(server) == ["own=9; x=y"])
            _ = try await collector.get(server.baseURL + set("a=1"))
            _ = try await collector.run(own)
            #expect(sent(server) == ["a=1; own=9; x=y"])
            _ = try await collector.get(server.baseURL + "/hello")
            #expect(sent(server) == ["a=1"])
        }
    }

    /// In the form of HTTP.
    private func date(_ seconds: time_t) -> String {
        var seconds = seconds
        var parts = tm()
        gmtime_r(&seconds, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            strftime(text.baseAddress!, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            return String(cString: text.baseAddress!)
        }
    }

    @Test func theJarIsListedFilledAndEmptied() async throws {
        try await withJar { collector, server in
            // libcurl 8.14 limits it to 400 days (draft-ietf-httpbis-rfc6265bis).
            let expires = time(nil) + 30 * 86_400
            _ = try await collector.get(
                server.baseURL + set("a=1; HttpOnly", "b=; Path=/p", "c=3; Expires=" + date(expires)))
            var cookies = collector.transport.cookies.sorted { $0.name < $1.name }
            try #require(cookies.count == 3)
            #expect(cookies.map(\.name) == ["a", "b", "c"] && cookies.map(\.value) == ["1", "", "3"])
            #expect(cookies.map(\.isHTTPOnly) == [true, false, false] && cookies[1].path == "/p")
            #expect(cookies[0].expires == nil && cookies[2].expires == Int64(expires))
            #expect(cookies.allSatisfy { $0.domain == "127.0.0.1" && !$0.includesSubdomains && !$0.isSecure })
            collector.transport.removeCookies()
            #expect(collector.transport.cookies.isEmpty)
            for cookie in cookies { collector.transport.setCookie(cookie) }
            #expect(Set(collector.transport.cookies) == Set(cookies))
            cookies[0].value = "new"
            collector.transport.setCookie(cookies[0])
            _ = try await collector.get(server.baseURL + "/hello")
            #expect(sent(server).first?.contains("a=new") ?? false && !(sent(server).first?.contains("a=1") ?? true))
            for bad in ["x\r\nEvil: 1", "x\ty", "\u{0}"] {
                collector.transport.setCookie(TransferCookie(name: "bad", value: bad, domain: "127.0.0.1"))
            }
            // Each of these would be sent as several cookies, or be a comment.
            for (name, value, domain) in [
                ("bad", "1; admin=1", "127.0.0.1"), ("bad=1; admin", "1", "127.0.0.1"), ("bad", "1", "#127.0.0.1"),
            ] {
                collector.transport.setCookie(TransferCookie(name: name, value: value, domain: domain))
            }
            collector.transport.setCookie(TransferCookie(name: "\u{301}", value: "4", domain: "127.0.0.1"))
            #expect(Set(collector.transport.cookies.map(\.name)) == ["a", "b", "c", "\u{301}"])
        }
    }

    @Test func subdomainsGetWhatIsTheirs() async throws {
        try await withJar { collector, server in
            var cookie = TransferCookie(name: "sub", value: "1", domain: "site.localhost")
            cookie.includesSubdomains = true
            collector.transport.setCookie(cookie)
            collector.transport.setCookie(TransferCookie(name: "only", value: "2", domain: "site.localhost"))
            for (host, names) in [
                ("site.localhost", ["only", "sub"]), ("a.site.localhost", ["sub"]), ("other.localhost", []),
            ] {
                _ = try await collector.get("http://\(host):\(server.port)/hello")
                let pairs = sent(server).first?.split(separator: ";").map { $0.prefix { $0 != "=" } } ?? []
                #expect(pairs.map { $0.filter { $0 != " " } }.sorted() == names, "\(host)")
            }
        }
    }

    @Test func loopsShareTheJar() async throws {
        try await withJar(loops: 3) { collector, server in
            _ = try await collector.get(server.baseURL + set("a=1"), loop: 0)
            for loop in UInt64(0)..<3 {
                _ = try await collector.get(server.baseURL + "/hello", loop: loop)
                #expect(sent(server) == ["a=1"], "loop \(loop)")
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for i in 0..<110 {
                    group.addTask {
                        if i % 10 == 0 { _ = collector.transport.cookies }
                        let url = server.baseURL + self.set("k\(i)=\(i)")
                        _ = try await collector.get(url, loop: UInt64(i % 3))
                    }
                }
                try await group.waitForAll()
            }
            // Fewer than the number from which a jar may drop some.
            #expect(collector.transport.cookies.count == 111)
        }
    }

    @Test func whetherThereAreAnyIsKnownWithoutAList() async throws {
        try await withJar { collector, server in
            let transport = collector.transport
            #expect(!transport.hasCookies)
            // A server sets one, another beside it, and removes both.
            for (cookies, isFilled) in [
                (["a=1"], true), (["b=2", "a=2"], true), (["a=; Max-Age=0"], true), (["c; Max-Age=0"], true),
                (["b=; Max-Age=0"], false), (["d=4; Domain=other.example"], false),
            ] {
                _ = try await collector.get(server.baseURL + set(cookies.joined(separator: "|")))
                #expect(transport.hasCookies == isFilled && transport.cookies.isEmpty != isFilled, "\(cookies)")
            }
            // So does the caller.
            transport.setCookie(TransferCookie(name: "a", value: "1", domain: "127.0.0.1"))
            #expect(transport.hasCookies)
            transport.removeCookies()
            #expect(!transport.hasCookies)
            // The cookie that lasts longest expires, and another takes its place.
            let now = Int64(Date.now.timeIntervalSince1970)
            for (name, end) in [("short", now + 1), ("past", now - 10)] {
                var cookie = TransferCookie(name: name, value: "1", domain: "127.0.0.1")
                cookie.expires = end
                transport.setCookie(cookie)
            }
            #expect(transport.hasCookies)
            while transport.hasCookies { try await Task.sleep(for: .milliseconds(10)) }
            #expect(transport.cookies.allSatisfy { ($0.expires ?? 0) < Int64(Date.now.timeIntervalSince1970) })
            _ = try await collector.get(server.baseURL + set("a=1"))
            #expect(transport.hasCookies)
        }
    }

    @Test func thoseThatAreSetAreCounted() async throws {
        try await withJar { collector, server in
            let transport = collector.transport
            let before = transport.cookieAdditions
            transport.setCookie(TransferCookie(name: "a", value: "1", domain: "127.0.0.1"))
            let callers = transport.cookieAdditions
            #expect(callers > before)
            _ = try await collector.get(server.baseURL + set("b=2"))
            let servers = transport.cookieAdditions
            #expect(servers > callers)
            // Neither a response without one nor the removal of all counts.
            _ = try await collector.get(server.baseURL + "/hello")
            transport.removeCookies()
            #expect(transport.cookieAdditions == servers && !transport.hasCookies)
            // One that was there before does.
            _ = try await collector.get(server.baseURL + set("b=2"))
            #expect(transport.cookieAdditions > servers)
        }
    }

    @Test func noneIsOverlookedThatIsSetMeanwhile() async throws {
        try await withJar(loops: 2) { collector, server in
            let transport = collector.transport
            for round in 0..<50 {
                async let run = collector.get(server.baseURL + set("a\(round % 3)=1"), loop: UInt64(round % 2))
                transport.removeCookies()
                _ = transport.hasCookies
                _ = try await run
                #expect(transport.hasCookies == !transport.cookies.isEmpty)
            }
        }
    }

    @Test func theJarOutlivesAShutdown() async throws {
        try await withJar { collector, server in
            _ = try await collector.get(server.baseURL + set("a=1"))
            collector.transport.shutdown()
            #expect(collector.transport.cookies.map(\.name) == ["a"])
        }
    }
}

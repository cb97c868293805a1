import Ferry
import Testing

/// Cookies of the upstream, kept by an agent with a jar.
@Suite(.timeLimit(.minutes(2))) struct CookieTests {
    private func configuration() -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        configuration.keepsCookies = true
        return configuration
    }

    @Test("a cookie is sent to the paths it is for, and to no others")
    func path() async throws {
        let upstream = try Upstream.shared
        try await withAgent(configuration()) { agent in
            try await agent.send(HTTPRequest.to(upstream.url + "/set-cookie?one=1&path=/echo"))
            try await agent.send(HTTPRequest.to(upstream.url + "/set-cookie?two=2&path=/"))
            let inside = try await agent.send(HTTPRequest.echo(upstream.url + "/echo/below")).value
            #expect(inside["Cookie"] == "one=1; two=2")
            let outside = try await agent.send(HTTPRequest.echo(upstream.url + "/elsewhere")).value
            #expect(outside["Cookie"] == "two=2")
        }
    }

    @Test("an expired cookie is dropped, and one for TLS is not sent over plain connections")
    func expiredAndSecure() async throws {
        let nginx = try Nginx.shared
        // Not 127.0.0.1: libcurl, like browsers, treats that like TLS.
        let host = "h1.localhost"
        try await withAgent(configuration()) { agent in
            for cookie in ["one=1&path=/", "one=1&path=/&max-age=0", "two=2&path=/&secure"] {
                try await agent.send(HTTPRequest.to(nginx.url("/set-cookie?\(cookie)", host: host)))
            }
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo", host: host))).value
            #expect(echo["Cookie"] == nil)
        }
    }

    @Test("another host gets no cookie")
    func otherHost() async throws {
        let nginx = try Nginx.shared
        try await withAgent(configuration()) { agent in
            try await agent.send(HTTPRequest.to(nginx.url("/set-cookie?one=1&path=/", host: "h1.localhost")))
            let other = try await agent.send(HTTPRequest.echo(nginx.url("/echo", host: "h2.localhost"))).value
            #expect(other["Cookie"] == nil)
            let same = try await agent.send(HTTPRequest.echo(nginx.url("/echo", host: "h1.localhost"))).value
            #expect(same["Cookie"] == "one=1")
        }
    }

    @Test("an agent without a jar keeps no cookies, and agents do not share them")
    func perAgent() async throws {
        let upstream = try Upstream.shared
        try await withAgent(configuration()) { keeping in
            try await withAgent { forgetting in
                for agent in [keeping, forgetting] {
                    try await agent.send(HTTPRequest.to(upstream.url + "/set-cookie?one=1&path=/"))
                }
                let without = try await forgetting.send(HTTPRequest.echo(upstream.url + "/echo")).value
                #expect(without["Cookie"] == nil)
                let with = try await keeping.send(HTTPRequest.echo(upstream.url + "/echo")).value
                #expect(with["Cookie"] == "one=1")
            }
        }
    }
}

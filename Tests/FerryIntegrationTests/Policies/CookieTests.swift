import Ferry
import Testing

/// Cookies of the upstream, kept by an agent that was asked to.
@Suite(.timeLimit(.minutes(2))) struct CookieTests {
    private func configuration() -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        configuration.keepsCookies = true
        return configuration
    }

    @Test("a cookie comes back to the paths it is for, and to no others")
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

    @Test("a cookie that has expired is gone, and one for TLS stays off plain connections")
    func expiredAndSecure() async throws {
        let nginx = try Nginx.shared
        // Not 127.0.0.1: to libcurl, as to browsers, that is as good as TLS.
        let host = "h1.localhost"
        try await withAgent(configuration()) { agent in
            for cookie in ["one=1&path=/", "one=1&path=/&max-age=0", "two=2&path=/&secure"] {
                try await agent.send(HTTPRequest.to(nginx.url("/set-cookie?\(cookie)", host: host)))
            }
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo", host: host))).value
            #expect(echo["Cookie"] == nil)
        }
    }

    @Test("another host gets none")
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

    @Test("an agent that was not asked to keeps none, and another agent knows nothing of them")
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

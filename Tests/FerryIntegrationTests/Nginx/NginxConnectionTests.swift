import Ferry
import Testing

/// Connections to nginx are kept, shared and replaced.
@Suite(.timeLimit(.minutes(2))) struct NginxConnectionTests {
    @Test("a thousand requests share a few connections")
    func reuse() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        var configuration = NetworkConfiguration()
        configuration.limits.transfersPerHost = 8
        try await withAgent(configuration) { agent in
            try await many(1000, agent, nginx.url("/hello.txt?\(mark)"))
            let lines = try await nginx.log(mark, count: 1000)
            #expect(lines.count == 1000 && lines.allSatisfy { $0.status == 200 })
            #expect(Set(lines.map(\.connection)).count <= 8)
            #expect(agent.statistics.connectionsOpened <= 8)
        }
    }

    @Test("sequential requests share one connection")
    func oneConnection() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            for _ in 0..<20 { try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)"))) }
            let lines = try await nginx.log(mark, count: 20)
            #expect(Set(lines.map(\.connection)).count == 1)
            #expect(lines.map(\.request).max() == 20)
        }
    }

    @Test("a server that closes each connection after three requests causes no failure")
    func closedByServer() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            try await many(300, agent, nginx.url("/brief/hello.txt?\(mark)"))
            let lines = try await nginx.log(mark, count: 300)
            #expect(lines.count == 300)
            #expect(lines.allSatisfy { $0.request <= 3 })
        }
    }

    @Test(
        "a request on a connection that has just closed is sent again, or was never sent",
        arguments: [HTTPMethod.get, .post])
    func closedWhenIdle(method: HTTPMethod) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            let unsure = try await withThrowingTaskGroup(of: Int.self) { group in
                for lane in 0..<16 {
                    let url = nginx.url("/idle/echo?\(mark)&\(lane)")
                    group.addTask { try await pause(around: 43 + lane, agent, url, method) }
                }
                return try await group.reduce(0, +)
            }
            let targets = try Upstream.shared.requests(to: mark).map(\.target)
            if method == .post { #expect(Set(targets).count == targets.count) }
            #expect(Set(targets).count >= 160 - unsure)
        }
    }

    /// Ten requests with pauses between them; returns how many of them failed and may have been processed.
    private func pause(
        around milliseconds: Int, _ agent: NetworkAgent, _ url: String, _ method: HTTPMethod
    ) async throws -> Int {
        var unsure = 0
        for round in 0..<10 {
            do throws(RequestError) {
                try await agent.send(HTTPRequest.to("\(url)&\(round)", method))
            } catch {
                // It is unknown whether nginx had read a POST before it closed.
                guard method == .post && error.mayHaveBeenProcessed else { throw error }
                unsure += 1
            }
            try await Task.sleep(for: .milliseconds(milliseconds))
        }
        return unsure
    }

    @Test("a reload of nginx under load fails no request")
    func reload() async throws {
        let nginx = try Nginx(.init(upstream: Upstream.shared.port))
        try await withAgent { agent in
            for _ in 0..<3 {
                async let load: Void = many(600, agent, nginx.url("/hello.txt"))
                nginx.reload()
                try await load
            }
        }
    }

    @Test("many hosts are served side by side, each over connections of its own")
    func manyHosts() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    let url = nginx.url("/echo?\(mark)&\(number)", host: "h\(number % 20).localhost")
                    group.addTask { _ = try await agent.send(HTTPRequest.to(url)) }
                }
                try await group.waitForAll()
            }
            let hosts = try Upstream.shared.requests(to: mark).compactMap { $0["Host"] }
            #expect(hosts.count == 200 && Set(hosts).count == 20)
        }
    }

    @Test("a name with both kinds of addresses reaches servers that have only IPv4, or both")
    func bothFamilies() async throws {
        let four = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(four.url("/hello.txt", host: "localhost")))
            #expect(reply.peer?.address == "127.0.0.1")
        }
    }

    @Test("::1 is reached by its address", .enabled(if: hasIPv6Loopback))
    func sixByAddress() async throws {
        let nginx = try Nginx(.init(listensOnIPv6: true, upstream: Upstream.shared.port))
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", host: "[::1]")))
            #expect(reply.text == "Hello, ferry" && reply.peer?.address == "::1")
            let named = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", host: "localhost")))
            #expect(named.text == "Hello, ferry")
        }
    }

    @Test("after nginx has stopped the next request fails to connect")
    func gone() async throws {
        var nginx: Nginx? = try Nginx(.init(upstream: Upstream.shared.port))
        let url = try #require(nginx).url("/hello.txt")
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(url))
            #expect(reply.text == "Hello, ferry")
            nginx = nil
            let error = await failure { () throws(RequestError) in try await agent.send(HTTPRequest.to(url)) }
            #expect(error?.code == .connect(.refused))
        }
    }

    /// `count` requests, 64 at once; throws the first failure.
    private func many(_ count: Int, _ agent: NetworkAgent, _ url: String) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= 64 { try await group.next() }
                group.addTask {
                    let reply = try await agent.send(HTTPRequest.to(url))
                    #expect(reply.text == "Hello, ferry")
                }
            }
            try await group.waitForAll()
        }
    }
}

import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Addresses that accept connections but do not work.
@Suite(.serialized, .timeLimit(.minutes(1))) struct AddressHealthTests {
    /// One healthy server on 127.0.0.1, and one on 127.0.0.2 that plays this script.
    private func withServers(
        _ steps: [LoopbackScript.Step], certificate: ServerCertificate? = nil,
        selection: AddressSelection = .roundRobin, _ body: (NetworkAgent, LoopbackServer) async throws -> Void
    ) async throws {
        var options = LoopbackServer.Options()
        options.certificate = certificate
        var pair: (well: LoopbackServer, ill: LoopbackServer)?
        // Another process may use the port on the second address.
        for attempt in 1... {
            do {
                (options.address, options.port) = ("127.0.0.1", 0)
                let well = try LoopbackServer(options)
                (options.address, options.port) = ("127.0.0.2", well.port)
                pair = (well, try LoopbackServer(options))
                break
            } catch {
                if attempt == 20 { throw error }
            }
        }
        let servers = try #require(pair)
        servers.ill.script(LoopbackScript(steps))
        let scheme = certificate == nil ? "http" : "https"
        try await withAgent(.automatic) {
            $0.baseURL = "\(scheme)://localhost:\(servers.well.port)"
            $0.addressSelection = selection
            $0.tls.authorityFile = certificate?.authorityFile
            $0.hostOverrides = ["localhost:\(servers.well.port)": ["127.0.0.2", "127.0.0.1"]]
        } _: { agent in
            try await body(agent, servers.ill)
        }
    }

    /// Sends requests that must not be repeated, and returns the times at which those to the second server failed,
    /// until there are this many.
    private func failures(_ count: Int, _ agent: NetworkAgent) async throws -> [Duration] {
        let start = ContinuousClock.now
        var times: [Duration] = []
        while times.count < count {
            let request = Full(
                path: "/echo/body", method: .post, body: .string("a"),
                timeouts: Timeouts(connect: .milliseconds(400), idle: .milliseconds(400)))
            switch await agent.result(request) {
            case .success(let response):
                #expect(response.metrics.peer?.address == "127.0.0.1")
            case .failure: times.append(start.duration(to: .now))
            }
        }
        return times
    }

    @Test(
        "An address that never responds is avoided, and for twice as long the second time",
        arguments: [[.expectHead, .keepOpen], [.expectHead, .close]] as [[LoopbackScript.Step]])
    func mute(steps: [LoopbackScript.Step]) async throws {
        try await withServers(steps) { agent, _ in
            let times = try await failures(3, agent)
            #expect(times[1] - times[0] > .milliseconds(800), "\(times)")
            #expect(times[2] - times[1] > .milliseconds(1600), "\(times)")
        }
    }

    @Test("So is one whose handshakes hang")
    func hangingHandshake() async throws {
        try await withServers([.stallHandshake], certificate: try ServerCertificate()) { agent, _ in
            let times = try await failures(2, agent)
            #expect(times[1] - times[0] > .milliseconds(800), "\(times)")
        }
    }

    @Test("If a handshake breaks off, the request goes to another address")
    func brokenHandshake() async throws {
        try await withServers([.closeHandshake], certificate: try ServerCertificate()) { agent, ill in
            for _ in 0..<20 {
                let request = Full(path: "/echo/body", method: .post, body: .string("a"))
                let seen1 = try await agent.send(request).metrics.peer?.address
                #expect(seen1 == "127.0.0.1")
            }
            #expect(ill.connectionCount == 1)
        }
    }

    @Test("So it does when addresses are used in order")
    func ordered() async throws {
        try await withServers([.expectHead, .keepOpen], selection: .ordered) { agent, ill in
            let times = try await failures(1, agent)
            #expect(times.count == 1)
            let seen2 = try await agent.send(Get("/hello")).metrics.peer?.address
            #expect(seen2 == "127.0.0.1")
            #expect(ill.connectionCount == 1)
        }
    }

    /// Each request to the first server runs beside one to the second.
    @Test("An address that responds to others meanwhile is only slow")
    func slow() async throws {
        try await withServers([.serve]) { agent, ill in
            ill.script(path: "/slow", [.expectHead, .keepOpen])
            var failed = 0
            // The rotation continues meanwhile: which of them gets it is random.
            while failed < 2 {
                let slow = Task {
                    await agent.result(Full(path: "/slow", timeouts: Timeouts(idle: .milliseconds(500))))
                }
                let end = ContinuousClock.now + .milliseconds(600)
                while ContinuousClock.now < end { try await agent.send(Get("/hello")) }
                // The first server knows no such path.
                if await slow.value.error?.is(.timeout) == true { failed += 1 }
                var peers: Set<String> = []
                for _ in 0..<4 { peers.insert(try await agent.send(Get("/hello")).metrics.peer?.address ?? "") }
                #expect(peers.count == 2)
            }
        }
    }

    @Test("An address that waits for the rest of a request is healthy")
    func upload() async throws {
        try await withServers([.serve]) { agent, _ in
            let body = RequestBody.stream { AsyncStream<[UInt8]> { $0.yield([1]) } }
            let limits = Timeouts(idle: nil, total: .milliseconds(1100))
            let upload = Full(path: "/upload", method: .post, body: body, timeouts: limits)
            #expect(await agent.result(upload).error?.code == .timeout(.total))
            var peers: Set<String> = []
            for _ in 0..<4 { peers.insert(try await agent.send(Get("/hello")).metrics.peer?.address ?? "") }
            #expect(peers.count == 2)
        }
    }
}

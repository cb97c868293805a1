import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Addresses that the policy forbids: row R41.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct AddressFaultTests {
    /// Notations of addresses that are not of the public internet.
    static let hosts = [
        "127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0x7f.1", "0", "0.0.0.0", "[::1]", "[::]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "localhost", "LOCALHOST", "localhost.",
        "169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fe80::1]", "[fc00::1]",
        "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
        "[2002:7f00:1::]", "[64:ff9b:1::1]", "[ff02::1]", "[100::1]",
    ]

    @Test("R41: no byte goes to an address that is not public, however it is written", arguments: hosts)
    func forbidden(host: String) async throws {
        try await expectFault(
            [], .addressForbidden, .preparing, .dns, .connect, processed: false, attempts: 0, received: 0
        ) {
            $0.host = host
            $0.probe.addressPolicy = .publicOnly
            $0.checksURL = false
            $0.next = .otherServer
        } after: { server in
            #expect(server.connectionCount == 0 && server.receivedByteCount == 0)
        }
    }

    /// Responds to the first request, like a server outside.
    private struct Outside: RequestInterceptor {
        let location: String
        func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
            guard request.url.contains("outside.example") else { return nil }
            return InterceptedResponse(status: 302, headers: ["Location": location])
        }
    }

    @Test("R41: no redirect from outside leads to one", arguments: hosts)
    func redirected(host: String) async throws {
        let inside = try LoopbackServer()
        try await expectFault(
            [], .addressForbidden, .preparing, .dns, .connect, processed: false, attempts: 0, received: 0
        ) {
            $0.configuration.interceptors = [
                Outside(location: "http://canary:canary@\(host):\(inside.port)/hello?\(Canary.query)")
            ]
            $0.probe.path = "http://outside.example/?\(Canary.query)"
            $0.probe.addressPolicy = .publicOnly
            $0.checksURL = false
        } error: { error in
            #expect(error.redirects.count == 1)
        }
        #expect(inside.connectionCount == 0)
    }

    @Test("R41: the address decides, not the name", arguments: [false, true])
    func nameOfThisMachine(isRedirected: Bool) async throws {
        let inside = try LoopbackServer()
        let url = "http://outside.inside.test:\(inside.port)/hello?\(Canary.query)"
        try await expectFault(
            [], .addressForbidden, .preparing, .dns, .connect, processed: false, attempts: 0, received: 0
        ) {
            if isRedirected { $0.configuration.interceptors = [Outside(location: url)] }
            $0.probe.path = isRedirected ? "http://outside.example/?\(Canary.query)" : url
            $0.probe.addressPolicy = .publicOnly
            $0.checksURL = false
        } error: { error in
            #expect(error.phase == .connect && error.redirects.count == (isRedirected ? 1 : 0))
        }
        #expect(inside.connectionCount == 0)
    }

    @Test("without the address policy such a name is connected to")
    func nameOfThisMachineWhereItIsAllowed() async throws {
        let inside = try LoopbackServer()
        try await expectAnswer(
            [], setUp: { $0.probe.path = "http://outside.inside.test:\(inside.port)/hello?\(Canary.query)" }
        ) { response, _ in
            #expect(response.text == "Hello, ferry")
        }
        #expect(inside.requestCount == FaultSetup().plays.count)
    }

    @Test("R41: a kept connection does not bypass the policy", arguments: Play.allCases)
    func keptConnection(play: Play) async throws {
        for host in ["127.0.0.1", "localhost"] {
            try await withFlow { server, agent in
                let url = "http://\(host):\(server.port)/hello"
                for _ in 0..<3 {
                    #expect(try await agent.send(Get(url)).text == "Hello, ferry")
                    var probe = HTTPRequest.probe(url)
                    probe.addressPolicy = .publicOnly
                    let error = try #require(try await agent.outcome(of: probe, play).error)
                    #expect(error.code == .addressForbidden && !error.mayHaveBeenProcessed)
                }
                #expect(server.requestCount == 3)
            }
        }
    }

    @Test("R41: the configuration's policy applies by default, and a redirect does not relax it")
    func ofTheConfiguration() async throws {
        let inside = try LoopbackServer()
        try await withFlow(next: .nowhere) {
            $0.addressPolicy = .publicOnly
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
        } _: { server, agent in
            for result in await agent.resultsOfBothWays(Get("/hello")) {
                #expect(result.error?.code == .addressForbidden)
            }
            #expect(server.connectionCount == 0)
            var probe = HTTPRequest.probe(server.baseURL + "/redirect-to?url=\(inside.baseURL)/hello")
            probe.addressPolicy = .any
            let reply = try await agent.send(probe)
            #expect(reply.text == "Hello, ferry")
        }
    }
}

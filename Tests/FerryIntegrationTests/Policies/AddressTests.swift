import Ferry
import Testing

/// Local servers, requested by a client that may only use public addresses.
@Suite(.timeLimit(.minutes(2))) struct AddressTests {
    @Test(
        "with public addresses only, nginx on the loopback gets no request under any name",
        arguments: ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "0", "[::ffff:127.0.0.1]"])
    func forbidden(host: String) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        var configuration = NetworkConfiguration()
        configuration.addressPolicy = .publicOnly
        try await withAgent(configuration) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", host: host)))
            }
            #expect(error?.code == .addressForbidden && error?.mayHaveBeenProcessed == false)
        }
        try await withAgent { agent in
            // Nothing precedes it in the log.
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?after-\(mark)")))
            #expect(try await nginx.log(mark, count: 1).map(\.target) == ["/hello.txt?after-\(mark)"])
        }
    }
}

import FerryTesting
import Testing

@testable import Ferry

#if canImport(Glibc)
import Glibc

@testable import FerryTestSupport
#endif

/// The socket options for probes on idle connections.
@Suite(.timeLimit(.minutes(1))) struct KeepAliveTests {
    /// TCP keep-alive of a socket, in seconds.
    struct Probes: Equatable {
        var isOn: Bool
        var after: Int32
        var between: Int32
        var count: Int32
    }

    @Test(
        arguments: [
            (nil, nil), (.seconds(30), Probes(isOn: true, after: 30, between: 10, count: 3)),
            (.milliseconds(20), Probes(isOn: true, after: 1, between: 1, count: 3)),
            (.seconds(-5), Probes(isOn: true, after: 1, between: 1, count: 3)),
            (.seconds(Int64.max), Probes(isOn: true, after: 32_767, between: 10_922, count: 3)),
        ] as [(Duration?, Probes?)], [TransferEngine.libcurl, .automatic])
    func sockets(time: (given: Duration?, probes: Probes?), engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.engine = engine
        configuration.tcpKeepAlive = time.given
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(Get("/hello"))
        let sockets = (Int32(0)..<4096).filter { peerPort(of: $0) == UInt16(server.port) }
        #expect(sockets.count == 1)
        for socket in sockets {
            if let probes = time.probes {
                #expect(Self.probes(of: socket) == probes)
            } else {
                #expect(!Self.probes(of: socket).isOn)
            }
        }
        await agent.shutdown()
    }

    private static func probes(of socket: Int32) -> Probes {
        func option(_ level: Int32, _ name: Int32) -> Int32 {
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, level, name, &value, &length)
            return value
        }
        let tcp = Int32(IPPROTO_TCP)
        return Probes(
            isOn: option(SOL_SOCKET, SO_KEEPALIVE) == 1, after: option(tcp, TCP_KEEPIDLE),
            between: option(tcp, TCP_KEEPINTVL), count: option(tcp, TCP_KEEPCNT))
    }

    /// `nil` if it is not an IPv4 connection.
    private func peerPort(of descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutableBytes(of: &address) { address in
            getpeername(descriptor, address.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
        }
        return code == 0 && address.sin_family == sa_family_t(AF_INET) ? UInt16(bigEndian: address.sin_port) : nil
    }
}

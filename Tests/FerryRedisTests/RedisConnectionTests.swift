import Glibc
import Testing

@testable import FerryRedis

@Suite struct RedisConnectionTests {
    /// A subscription that nobody writes to would not notice otherwise that a firewall has forgotten it.
    @Test func theSystemProbesASilentServer() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try #require(bind(listener, $0, size) == 0 && listen(listener, 1) == 0)
                try #require(getsockname(listener, $0, &size) == 0)
            }
        }
        let port = Int(UInt16(bigEndian: address.sin_port))
        let connection = try RedisConnection(RedisConfiguration(host: "127.0.0.1", port: port))
        func option(_ level: Int32, _ option: Int32) -> Int32 {
            var (value, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            return getsockopt(connection.descriptor, level, option, &value, &size) == 0 ? value : -1
        }
        #expect(option(SOL_SOCKET, SO_KEEPALIVE) == 1)
        #expect((1...60).contains(option(Int32(IPPROTO_TCP), TCP_KEEPIDLE)))
    }
}

import Dispatch
import FerrySynchronization
import FerryTesting
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A slow connection with TLS: a record of 16 KB arrives in many pieces, and can be read only when it is whole.
@Suite(.timeLimit(.minutes(1))) struct SlowRecordTests {
    @Test(arguments: [TransferEngine.automatic, .libcurl])
    func theIdleTimeoutCountsBytesAndNotRecords(engine: TransferEngine) async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        let relay = try SlowRelay(to: server.port)
        var configuration = NetworkConfiguration(baseURL: "https://localhost:\(relay.port)")
        configuration.engine = engine
        configuration.tls.authorityFile = certificate.authorityFile
        configuration.timeouts.idle = .milliseconds(800)
        let agent = NetworkAgent(configuration: configuration)
        let began = ContinuousClock.now
        let reply = try await agent.send(Get("/bytes/16000"))
        #expect(reply.bytes == LoopbackServer.pattern(0..<16_000))
        #expect(ContinuousClock.now - began > .milliseconds(800), "it was not slow enough to show anything")
        await agent.shutdown()
        relay.stop()
        server.stop()
    }
}

/// Passes one connection on to a port of this machine, and what comes back in small pieces.
private final class SlowRelay: Sendable {
    let port: UInt16
    private let listener: Int32
    private let ends = Mutex<[Int32]>([])
    private let threads = DispatchGroup()

    private static let piece = 200
    private static let pause: useconds_t = 20_000

    init(to target: UInt16) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isReady = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isReady)
        port = UInt16(bigEndian: address.sin_port)
        self.listener = listener
        DispatchQueue.global().async(group: threads) { [self] in
            let client = accept(listener, nil, nil)
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.address(target)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            ends.withLock { $0 = [client, server] }
            if client < 0 || !isConnected { return }
            DispatchQueue.global().async(group: threads) { Self.pass(from: client, to: server, by: 16_384, pause: 0) }
            Self.pass(from: server, to: client, by: Self.piece, pause: Self.pause)
        }
    }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for end in ends.withLock({ $0 }) { shutdown(end, Int32(SHUT_RDWR)) }
        threads.wait()
        for end in ends.withLock({ $0 }) + [listener] { close(end) }
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func pass(from source: Int32, to target: Int32, by size: Int, pause: useconds_t) {
        var space = [UInt8](repeating: 0, count: size)
        while true {
            let count = read(source, &space, size)
            if count <= 0 || send(target, space, count, Int32(MSG_NOSIGNAL)) != count { break }
            if pause > 0 { usleep(pause) }
        }
        shutdown(target, Int32(SHUT_WR))
    }
}

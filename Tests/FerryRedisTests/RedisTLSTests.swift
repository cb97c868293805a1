import Ferry
import FerryCache
import FerryTesting
import Testing

@testable import FerryRedis

/// TLS on the connections to Redis, against a server that plays one side of the protocol by a script.
@Suite(.timeLimit(.minutes(1))) struct RedisTLSTests {
    private static func ping(_ client: RedisClient) throws {
        let reply = try client.perform(ping)
        #expect(reply == .status("OK"))
    }

    private static let ping = ["PING".utf8, "hi".utf8].map { Array($0) }
    private static let pingBytes = "*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n".utf8.count
    /// Replies to one command after another.
    private static let honest: LoopbackScript = [.expectBytes(pingBytes), .send("+OK\r\n"), .restart]

    private let certificate: ServerCertificate

    init() throws { certificate = try ServerCertificate() }

    private func with(
        _ script: LoopbackScript = Self.honest, options: (inout LoopbackServer.Options) -> Void = { _ in },
        change: (inout RedisConfiguration) -> Void = { _ in }, _ body: (RedisClient, LoopbackServer) throws -> Void
    ) async throws {
        var serverOptions = LoopbackServer.Options(certificate: certificate)
        options(&serverOptions)
        try await withLoopbackServer(serverOptions) { server in
            server.script(script)
            var redis = RedisConfiguration(host: "localhost", port: Int(server.port))
            (redis.connectTimeout, redis.timeout) = (.seconds(20), .seconds(20))
            var tls = RedisConfiguration.TLS()
            tls.authorityFile = certificate.authorityFile
            redis.tls = tls
            change(&redis)
            try body(RedisClient(redis), server)
        }
    }

    private func fault(
        _ script: LoopbackScript = Self.honest, isUnfinished: Bool = false,
        options: (inout LoopbackServer.Options) -> Void = { _ in },
        change: (inout RedisConfiguration) -> Void = { _ in }
    ) async throws -> String {
        var text = ""
        var handshakes = 0
        try await with(script, options: options, change: change) { client, server in
            let fault = #expect(throws: RedisClient.Fault.self) { try client.perform(Self.ping) }
            #expect(fault?.isReply == false && server.requestCount == 0)
            handshakes = server.handshakeCount
            text = fault?.description.replacing("localhost:\(server.port)", with: "SERVER") ?? ""
        }
        // Without a handshake the server cannot have read a command.
        #expect(!isUnfinished || handshakes == 0)
        return text
    }

    @Test(arguments: [12...12, 13...13])
    func commandsAndRepliesAreEncryptedOverOneConnection(versions: ClosedRange<Int>) async throws {
        try await with(options: { $0.tlsVersions = versions }) { client, server in
            for _ in 0..<3 { try Self.ping(client) }
            #expect(server.handshakeCount == 1 && server.connectionCount == 1)
        }
    }

    /// Both are larger than a record, and than what the socket accepts at once.
    @Test func largeCommandsAndRepliesArriveWhole() async throws {
        let count = 3_000_000
        let value = Array(repeating: UInt8(ascii: "v"), count: count)
        let head = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$\(count)\r\n"
        try await with([
            .expectBytes(head.utf8.count + count + 2), .send("$\(count)\r\n"), .pattern(bytes: count), .send("\r\n"),
        ]) { client, _ in
            let reply = try client.perform([Array("SET".utf8), Array("a".utf8), value])
            #expect(reply == .bytes(LoopbackServer.pattern(0..<count)))
        }
    }

    @Test func anUntrustedServerGetsNoCommand() async throws {
        let trust = try await fault(isUnfinished: true, change: { $0.tls?.authorityFile = nil })
        #expect(trust == "no TLS connection to Redis at SERVER: unable to get local issuer certificate")
        let name = try await fault(isUnfinished: true, change: { $0.tls?.serverName = "wrong.example" })
        #expect(name == "no TLS connection to Redis at SERVER: hostname mismatch")
        let address = try await fault(isUnfinished: true, change: { $0.tls?.serverName = "10.9.8.7" })
        #expect(address == "no TLS connection to Redis at SERVER: IP address mismatch")
    }

    @Test(arguments: ["127.0.0.1", "localhost", "localhost."])
    func theCertificateMayHaveThisName(name: String) async throws {
        try await with(change: { $0.tls?.serverName = name }) { client, _ in
            try Self.ping(client)
        }
    }

    /// OpenSSL would accept any certificate, or all names below a domain.
    @Test(arguments: ["", ".", ".example"]) func aNameThatIsNoneIsRefused(name: String) async throws {
        let text = try await fault(isUnfinished: true, change: { $0.tls?.serverName = name })
        #expect(text.hasPrefix("no TLS connection to Redis at SERVER: "), "\(text)")
    }

    @Test func nothingIsVerifiedOnRequest() async throws {
        var tls = RedisConfiguration.TLS()
        (tls.serverName, tls.verification) = ("wrong.example", .none)
        try await with(change: { $0.tls = tls }) { client, _ in
            try Self.ping(client)
        }
    }

    @Test(arguments: [12...12, 13...13])
    func aServerMayDemandACertificate(versions: ClosedRange<Int>) async throws {
        func demand(_ options: inout LoopbackServer.Options) {
            (options.demandsClientCertificate, options.tlsVersions) = (true, versions)
        }
        let text = try await fault(options: demand)
        #expect(text.hasPrefix("no TLS connection to Redis at SERVER: ") && text.contains("alert"), "\(text)")
        func present(_ redis: inout RedisConfiguration) {
            redis.tls?.certificateFile = certificate.clientCertificateFile
            redis.tls?.keyFile = certificate.clientKeyFile
        }
        try await with(options: demand, change: present) { client, _ in
            try Self.ping(client)
        }
    }

    /// A key that needs a password must not make OpenSSL ask for it.
    @Test func filesThatCannotBeUsedAreNamed() async throws {
        let locked = try await fault(change: {
            $0.tls?.certificateFile = certificate.clientCertificateFile
            $0.tls?.keyFile = certificate.lockedClientKeyFile
        })
        #expect(locked.contains("the certificate or its key cannot be used: "), "\(locked)")
        let lone = try await fault(change: { [certificate] in $0.tls?.keyFile = certificate.clientKeyFile })
        #expect(lone == "no TLS connection to Redis at SERVER: the key has no certificate")
        let missing = try await fault(change: { $0.tls?.authorityFile = "/nowhere.pem" })
        #expect(missing.contains("the authorities cannot be read: "), "\(missing)")
    }

    @Test func aServerWithoutTLSIsNoTLSConnection() async throws {
        let text = try await fault([.plain, .send("-ERR unknown command\r\n")])
        #expect(text == "no TLS connection to Redis at SERVER: wrong version number")
        let closed = try await fault([.closeHandshake])
        #expect(closed.hasPrefix("no TLS connection to Redis at SERVER: "), "\(closed)")
    }

    @Test func aHandshakeThatStallsEndsAtTheTimeLimit() async throws {
        let start = ContinuousClock.now
        let text = try await fault([.stallHandshake], change: { $0.connectTimeout = .milliseconds(200) })
        #expect(ContinuousClock.now - start < .seconds(15), "the other limits are 20 seconds")
        #expect(text == "Redis at SERVER did not reply in time")
    }

    /// The next command has a connection of its own.
    @Test(arguments: [LoopbackScript.Step.close, .drop, .reset])
    func aConnectionThatEndsIsAFault(end: LoopbackScript.Step) async throws {
        try await with([.expectBytes(Self.pingBytes), end]) { client, server in
            for count in 1...2 {
                #expect(throws: RedisClient.Fault.self) { try client.perform(Self.ping) }
                #expect(server.connectionCount == count)
            }
        }
    }

    @Test func messagesWithoutDataAreEnduredUpToALimit() async throws {
        try await with([
            .expectBytes(Self.pingBytes), .keyUpdates(1000), .send("+OK\r\n"), .restart,
        ]) { client, _ in
            for _ in 0..<20 { try Self.ping(client) }
        }
        let text = try await fault([.expectBytes(Self.pingBytes), .keyUpdates(20_000)])
        #expect(text == "Redis at SERVER sent a reply that is invalid or too large")
    }

    /// The storage's own loop, not the client that blocks.
    @Test func aStorageCountsTheFaultAndMisses() async throws {
        try await withLoopbackServer(.init(certificate: certificate)) { server in
            var redis = RedisConfiguration(host: "localhost", port: Int(server.port))
            (redis.connectTimeout, redis.timeout, redis.writeTimeout) = (.seconds(20), .seconds(20), .seconds(20))
            redis.tls = RedisConfiguration.TLS()
            let storage = RedisCacheStorage(redis)
            #expect(await storage.absence(key(1)) == .unavailable)
            #expect(storage.counts.faults == [.tls: 1])
            await storage.close()
        }
    }
}

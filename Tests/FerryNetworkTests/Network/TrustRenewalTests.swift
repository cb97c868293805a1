import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Files of authorities and of client certificates that change while the agent runs.
@Suite(.timeLimit(.minutes(1))) struct TrustRenewalTests {
    /// Replaces a file by another, like software that rotates certificates.
    private func replace(_ path: String, by contents: Data) throws {
        try contents.write(to: URL(filePath: path), options: .atomic)
    }

    private func contents(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: path)) }

    private func agent(_ tls: TLSConfiguration, log: KeptLog) -> NetworkAgent {
        var configuration = NetworkConfiguration()
        configuration.engine = .automatic
        configuration.tls = tls
        configuration.logSink = log
        return NetworkAgent(configuration: configuration)
    }

    /// A request over a new connection.
    private func code(_ agent: NetworkAgent, _ server: LoopbackServer) async -> RequestError.Code? {
        let url = "https://localhost:\(server.port)/hello"
        return await agent.result(Full(path: url, headers: ["Connection": "close"])).error?.code
    }

    private func renewed(_ agent: NetworkAgent, _ server: LoopbackServer, _ count: UInt64) async {
        while agent.statistics.trustRenewals < count { _ = await code(agent, server) }
    }

    @Test func newAuthoritiesCountForNewConnections() async throws {
        let (old, new) = (try ServerCertificate(), try ServerCertificate())
        let (first, second) = (
            try LoopbackServer(.init(certificate: old)), try LoopbackServer(.init(certificate: new))
        )
        let folder = try Folder()
        let file = folder.file("authorities.pem")
        try replace(file, by: Data(old.authority.utf8))
        let log = KeptLog()
        let agent = agent(TLSConfiguration(authorityFile: file), log: log)
        #expect(await code(agent, first) == nil)
        #expect(await code(agent, second) == .tls(.untrusted))
        try replace(file, by: Data((old.authority + new.authority).utf8))
        // While they change, no request with the old one fails.
        while agent.statistics.trustRenewals < 1 { #expect(await code(agent, first) == nil) }
        #expect(await code(agent, second) == nil)
        try replace(file, by: Data(new.authority.utf8))
        await renewed(agent, second, 2)
        // No session of the old trust is resumed, either.
        #expect(await code(agent, first) == .tls(.untrusted))
        #expect(await code(agent, second) == nil)
        #expect(agent.statistics.trustFaults == 0)
        #expect(log.entries.count { $0.message == "changed TLS files are in use" } == 2)
        await agent.shutdown()
    }

    @Test func whatDoesNotParseChangesNothing() async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        let folder = try Folder()
        let file = folder.file("authorities.pem")
        try replace(file, by: Data(certificate.authority.utf8))
        let log = KeptLog()
        let agent = agent(TLSConfiguration(authorityFile: file), log: log)
        #expect(await code(agent, server) == nil)
        try replace(file, by: Data("nonsense".utf8))
        while agent.statistics.trustFaults < 1 { #expect(await code(agent, server) == nil) }
        #expect(await code(agent, server) == nil)
        #expect(agent.statistics.trustRenewals == 0)
        let faults = log.entries.filter { $0.message.hasPrefix("changed TLS files cannot be used: ") }
        #expect(!faults.isEmpty && faults.allSatisfy { $0.level == .warning })
        await agent.shutdown()
    }

    @Test func aClientCertificateAndItsKeyAreReadAgain() async throws {
        let (old, new) = (try ServerCertificate(), try ServerCertificate())
        var options = LoopbackServer.Options(certificate: new)
        options.demandsClientCertificate = true
        let server = try LoopbackServer(options)
        let folder = try Folder()
        let (certificate, key) = (folder.file("client.pem"), folder.file("client.key"))
        try replace(certificate, by: try contents(old.clientCertificateFile))
        try replace(key, by: try contents(old.clientKeyFile))
        let tls = TLSConfiguration(
            authorityFile: new.authorityFile,
            clientCertificate: ClientCertificate(certificateFile: certificate, keyFile: key))
        let agent = agent(tls, log: KeptLog())
        #expect(await code(agent, server) != nil)
        // The new key is still missing.
        try replace(certificate, by: try contents(new.clientCertificateFile))
        while agent.statistics.trustFaults < 1 { #expect(await code(agent, server) != nil) }
        try replace(key, by: try contents(new.clientKeyFile))
        await renewed(agent, server, 1)
        #expect(await code(agent, server) == nil)
        await agent.shutdown()
    }
}

import FaultTable
import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Exchanges with servers that offer HTTP/2, which libcurl would carry.
@Suite(.timeLimit(.minutes(1))) struct HTTP2DuplexTests {
    @Test func whereHTTP2IsOfferedAnExchangeUsesHTTP1() async throws {
        let nginx = try Nginx.shared
        var configuration = try NetworkConfiguration.trusting
        (configuration.engine, configuration.http2) = (.automatic, .negotiated)
        let agent = NetworkAgent(configuration: configuration)
        let url = nginx.url("/hello.txt", .http2)
        let version = try await agent.exchange(HTTPRequest(.get, url)) { response, body in
            try body.finish()
            for try await _ in try await response.body {}
            return try await response.head.httpVersion
        }
        #expect(version == .http11)
        #expect(try await agent.send(Get(url)).httpVersion == .http2)
        await agent.shutdown()
    }

    @Test func anExchangeWithPriorKnowledgeIsRefused() async throws {
        var configuration = NetworkConfiguration()
        (configuration.engine, configuration.http2) = (.automatic, .priorKnowledge)
        let agent = NetworkAgent(configuration: configuration)
        let server = try LoopbackServer()
        do {
            try await agent.exchange(HTTPRequest(.post, server.baseURL + "/echo/body")) { response, body in
                try body.finish()
                _ = try await response.head
            }
            Issue.record("it was sent")
        } catch {
            #expect((error as? RequestError)?.code.name == "invalidRequest" && "\(error)".contains("full duplex"))
        }
        #expect(server.connectionCount == 0)
        await agent.shutdown()
    }
}

#if Logging
import Ferry
import FerryLogging
import FerryTesting
import InMemoryLogging
import Logging
import Testing

@Suite struct LoggingTests {
    @Test func theEndOfARunIsLogged() async throws {
        let handler = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in handler }
        logger.logLevel = .debug
        let entries = try await withLoopbackServer { server in
            server.handle("GET", "/x") { _ in LoopbackResponse(text: "fine") }
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.logSink = LoggerSink(logger)
            try await withNetworkAgent(configuration: configuration) { agent in
                _ = try await agent.get("/x?token=hidden")
            }
            return handler.entries
        }
        let ended = try #require(entries.first { $0.message == "finished" })
        #expect(ended.level == .debug)
        #expect(ended.metadata["method"] == "GET")
        #expect(ended.metadata["status"] == "200")
        #expect(ended.metadata["run"] != nil)
        #expect("\(ended.metadata["url"] ?? "")".hasSuffix("/x?token=***"))
        #expect(Int("\(ended.metadata["us"] ?? "")") ?? -1 > 0)
        // Header fields are logged at the level below.
        #expect(!entries.contains { $0.metadata["headers"] != nil })
    }

    @Test func theLevelOfTheLoggerIsTheLevelOfTheSink() {
        var logger = Logger(label: "test") { _ in InMemoryLogHandler() }
        logger.logLevel = .trace
        #expect(LoggerSink(logger).minimumLevel == .trace)
        logger.logLevel = .warning
        #expect(LoggerSink(logger).minimumLevel == .warning)
        logger.logLevel = .critical
        #expect(LoggerSink(logger).minimumLevel == .error)
    }

    @Test func everyMemberOfAnEntryIsMetadata() throws {
        let handler = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in handler }
        logger.logLevel = .trace
        var entry = LogEntry(.notice, "words", run: 7, url: "http://kim:pw@h:81/x")
        entry.attempt = 2
        entry.error = .connectionReset
        entry.duration = .milliseconds(3)
        entry.setHeaders(Headers([.init(name: "Cookie", value: "a=b"), .init(name: "A", value: "1")]))
        LoggerSink(logger).log(entry)
        let line = try #require(handler.entries.first)
        #expect(line.level == .notice)
        #expect(line.message == "words")
        #expect(
            line.metadata == [
                "run": "7", "host": "h:81", "url": "http://h:81/x", "us": "3000", "attempt": "2",
                "error": "connectionReset", "headers": ["Cookie: ***", "A: 1"],
            ])
    }
}
#endif

import FerrySynchronization
import FerryTesting
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct LogTests {
    private let run = RunInfo(id: 7, method: .get, url: "http://kim:canary@h:81/x?t=canary")

    @Test func everyStepOfARunIsOneLine() {
        let sink = KeptLog()
        let log = RunLog(sink: sink, sensitiveHeaders: ["X-Mine"])
        var metrics = RequestMetrics()
        metrics.total = .microseconds(1240)
        metrics.attempts = 2
        log.started(run)
        log.sends(
            run, .get, to: "http://kim:canary@h:81/x?t=canary",
            ["Accept": "*/*", "Cookie": "canary", "X-Mine": "canary"])
        log.redirected(run, to: "https://kim:canary@other/y?t=canary", status: 302)
        log.retrying(run, attempt: 2, after: .timeout(.connect), delay: .milliseconds(50))
        log.received(run, status: 200, ["Set-Cookie": "canary", "ETag": "\"1\""])
        log.ended(run, .finished(status: 200, isFromCache: false), metrics)
        #expect(
            sink.lines == [
                "debug started run=7 method=GET url=http://h:81/x?t=***",
                "trace sends run=7 method=GET url=http://h:81/x?t=***"
                    + " header=\"Accept: */*\" header=\"Cookie: ***\" header=\"X-Mine: ***\"",
                "debug redirected run=7 method=GET url=https://other/y?t=*** status=302",
                "debug retrying run=7 method=GET url=http://h:81/x?t=*** us=50000 attempt=2 error=timeout(connect)",
                "trace received run=7 method=GET url=http://h:81/x?t=*** status=200"
                    + " header=\"Set-Cookie: ***\" header=\"ETag: \\\"1\\\"\"",
                "debug finished run=7 method=GET url=http://h:81/x?t=*** status=200 us=1240 attempt=2",
            ])
        #expect(sink.entries.allSatisfy { $0.level <= .debug }, "nothing of the library's is above debug")
    }

    @Test func everyHopIsLoggedAsItLeaves() async throws {
        let sink = KeptLog()
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.logSink = sink
        let agent = NetworkAgent(configuration: configuration)
        let request = HTTPRequest(.post, "/redirect-to?status=303&url=/echo")
        #expect(try await agent.send(request).status == 200)
        let sent = sink.entries.filter { $0.message == "sends" }
        #expect(sent.map(\.method) == [.post, .get])
        let urls = ["/redirect-to?status=***&url=***", "/echo"].map { server.baseURL + $0 }
        #expect(sent.map(\.url) == urls)
        let received = sink.entries.filter { $0.message == "received" }
        #expect(received.map(\.url) == urls && received.map(\.method) == [.post, .get])
        #expect(received.map(\.status) == [303, 200])
        await agent.shutdown()
    }

    @Test func everyEndHasItsWord() {
        let sink = KeptLog()
        let log = RunLog(sink: sink)
        log.ended(run, .finished(status: 200, isFromCache: true), RequestMetrics())
        log.ended(run, RunOutcome(RequestError(.connect(.refused), message: "canary")), RequestMetrics())
        log.ended(run, .cancelled, RequestMetrics())
        log.ended(RunInfo(id: 9, kind: .chain), .finished(status: nil, isFromCache: false), RequestMetrics())
        #expect(
            sink.lines == [
                "debug finished from the cache run=7 method=GET url=http://h:81/x?t=*** status=200 us=0",
                "debug failed run=7 method=GET url=http://h:81/x?t=*** us=0 error=connect(refused)",
                "debug cancelled run=7 method=GET url=http://h:81/x?t=*** us=0",
                "debug finished run=9 us=0",
            ])
    }

    @Test func entriesBelowTheLevelAreNotMade() {
        let sink = KeptLog(.debug)
        let log = RunLog(sink: sink)
        func headers() -> Headers {
            Issue.record("the fields were asked for")
            return Headers()
        }
        log.sends(run, .get, to: "http://h/", headers())
        log.received(run, status: 200, headers())
        #expect(sink.entries.isEmpty)
    }

    @Test func noValueForgesALineOrAField() {
        var entry = LogEntry(.error, "odd\nwords")
        let turned = LogEntry(.error, "odd", url: "http://h/\u{9B}31m\u{202E}x")
        #expect(turned.description.hasSuffix("url=\"http://h/\\u{9b}31m\\u{202e}x\""))
        entry.method = "A B\" run=8\r\n\u{2028}\u{85}\u{1B}[31m\\"
        #expect(
            entry.description
                == "error odd\\nwords method=\"A B\\\" run=8\\r\\n\\u{2028}\\u{85}\\u{1b}[31m\\\\\"")
        entry = LogEntry(.info, "x", url: "http://h/a b\u{E9}")
        #expect(entry.description == "info x url=\"http://h/a b\u{E9}\"")
        #expect(entry.host == "h")
    }

    @Test func levelsAreOrderedAsTheyAreListed() {
        #expect(LogLevel.allCases == LogLevel.allCases.sorted())
        #expect(LogLevel.allCases.map(\.description) == ["trace", "debug", "info", "notice", "warning", "error"])
    }

    @Test func aLineIsOneWriteWithItsTime() {
        var ends: [Int32] = [-1, -1]
        // A datagram is the content of one write.
        #expect(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let sink = FileHandleLogSink(descriptor: ends[0], minimumLevel: .debug) {
            timespec(tv_sec: 1_763_673_283, tv_nsec: 7_999_999)
        }
        sink.log(LogEntry(.notice, "first"))
        sink.log(LogEntry(.debug, "second", run: run))
        func received() -> String {
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = recv(ends[1], &buffer, buffer.count, Int32(MSG_DONTWAIT))
            return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        }
        #expect(received() == "2025-11-20T21:14:43.007Z notice first\n")
        #expect(received() == "2025-11-20T21:14:43.007Z debug second run=7 method=GET url=http://h:81/x?t=***\n")
    }

    @Test func aDescriptorThatIsClosedLosesTheLineOnly() {
        FileHandleLogSink(descriptor: -1).log(LogEntry(.error, "lost"))
        #expect(PrintLogSink().minimumLevel == .debug)
        #expect(PrintLogSink(minimumLevel: .warning).minimumLevel == .warning)
    }
}

import FaultTable
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A canary is in every place of an exchange that may be secret, and all output of observation is searched for it.
@Suite(.faultTable) struct WatchingSecretTests {
    private static let url = "https://kim:canary@Host:8443/x?token=canary&canary#canary"
    private static let headers: Headers = [
        "Authorization": "Bearer canary", "Proxy-Authorization": "Basic canary", "Cookie": "a=canary",
        "Set-Cookie": "b=canary; Path=/", "X-Api-Key": "canary", "X-Declared": "canary",
        "Location": "https://kim:canary@h/y?code=canary#canary", "Referer": "https://h/?canary",
        "WWW-Authenticate": "Digest nonce=\"canary\"", "X-Amz-Signature": "canary",
    ]

    private let run = RunInfo(
        id: 7, method: .post, url: url, tag: "tag", userInfo: ["secret": "canary"])

    /// In each way in which a value becomes a text.
    private func expectNone<Value>(in value: Value, _ place: SourceLocation = #_sourceLocation) {
        var dumped = ""
        dump(value, to: &dumped)
        for text in ["\(value)", String(describing: value), String(reflecting: value), "\([value])", dumped] {
            #expect(!text.lowercased().contains("canary"), "\(text)", sourceLocation: place)
        }
    }

    private func outcomes() throws -> [RunOutcome] {
        let head = "HTTP/1.1 503 X\r\nSet-Cookie: canary\r\n\r\n"
        let result = try TransferResult(id: 1, head: Array(head.utf8), body: Array("canary".utf8))
        let response = Response(result, url: Self.url)
        var refused = TransferFailure(.connect, .connectRefused)
        refused.message = "nobody listens"
        return [
            .finished(status: 200, isFromCache: false), .cancelled, .failed(RequestError(refused, url: Self.url)),
            .failed(RequestError(.invalidStatusCode(503), message: "not accepted", response: response)),
            .failed(
                RequestError(preparing: .invalidURL, message: "no", url: "http://a:can/ary@canary@ h", isBroken: true)),
        ]
    }

    @Test("R107: runs and outcomes contain none") func runsAndOutcomes() throws {
        expectNone(in: run)
        expectNone(in: run.url)
        expectNone(in: run.host)
        for outcome in try outcomes() { #expect(!"\(outcome)\(String(describing: outcome))".contains("canary")) }
    }

    @Test("R107: logs of every step contain none") func logsOfEveryStep() throws {
        let sink = KeptLog()
        let log = RunLog(sink: sink, sensitiveHeaders: ["x-declared"])
        log.started(run)
        log.sends(run, .get, to: Self.url, Self.headers)
        log.received(run, status: 302, Self.headers)
        log.redirected(run, to: Self.url, status: 302)
        log.retrying(run, attempt: 2, after: .connectionReset, delay: .zero)
        for outcome in try outcomes() { log.ended(run, outcome, RequestMetrics()) }
        #expect(sink.entries.count == 10)
        for entry in sink.entries { expectNone(in: entry) }
        #expect(sink.lines.joined().contains("x?token=***&***"), "it is the canary that is missing, not the URL")
    }

    @Test("R107: metrics and their labels contain none") func figures() throws {
        let recorder = MetricsRecorder(maxHosts: 8)
        for outcome in try outcomes() {
            recorder.willStart(run)
            recorder.willStop(run, outcome)
            recorder.metrics(run, RequestMetrics())
            recorder.didStop(run, outcome)
        }
        expectNone(in: recorder.snapshot)
        expectNone(in: recorder.prometheusText())
        #expect(recorder.snapshot.hosts.keys.sorted() == ["host:8443"])
    }

    @Test("R107: the health of hosts contains none") func healthOfHosts() async throws {
        let table = HostHealthTable()
        var changes = table.changes.makeAsyncIterator()
        table.succeeded(Self.url)
        expectNone(in: await changes.next())
        for outcome in try outcomes() { if let error = outcome.error { table.failed(Self.url, error) } }
        expectNone(in: table.all)
        #expect(table.all.keys.sorted() == ["https://host:8443"])
    }

    @Test("R107: commands for curl contain none") func commands() {
        var options = CurlCommand.Options()
        options.proxy = "http://kim:canary@proxy"
        let command = CurlCommand(
            method: .post, url: Self.url, headers: Self.headers, body: .bytes(Array("canary".utf8)), options: options,
            sensitiveHeaders: ["x-declared"])
        expectNone(in: command)
        #expect(command.text(redacted: false).contains("canary"))
    }
}

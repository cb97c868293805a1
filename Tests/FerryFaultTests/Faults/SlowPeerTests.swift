import FaultTable
import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Peers that stop or crawl: rows R66 to R70.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct SlowPeerTests {
    @Test(
        "R66: a head that does not arrive completely is a timeout of the head",
        arguments: ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nX: y\r\n"])
    func stalledHead(text: String) async throws {
        try await expectFault(
            [.expectHead, .send(text), .keepOpen], .timeout(.responseHead), .waitingHead, .head
        ) {
            $0.probe.timeouts = Timeouts(idle: .milliseconds(200))
            $0.ends(after: .milliseconds(200))
        }
    }

    @Test("R66: so is 100 Continue without a final response")
    func stalledAfterContinue() async throws {
        try await expectFault(
            [.expectHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .keepOpen], .timeout(.responseHead), .waitingHead
        ) {
            $0.probe.timeouts = Timeouts(idle: .milliseconds(200))
            $0.ends(after: .milliseconds(200))
        }
    }

    @Test(
        "R66: a body that stops is a timeout of the body",
        arguments: ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n", ""])
    func stalledBody(fields: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields) + "3\r\nabc"), .keepOpen], .timeout(.read), .body
        ) {
            $0.probe.timeouts = Timeouts(idle: .milliseconds(500))
            $0.ends(after: .milliseconds(500))
        }
    }

    @Test("R66: total timeout and deadline apply although bytes keep arriving")
    func boundsOverDrip() async throws {
        let drip = String(repeating: "x", count: 10_000)
        let script: LoopbackScript = [
            .expectHead, .send(head("200 OK", "Content-Length: 10000\r\n")), .drip(drip, interval: .milliseconds(10)),
        ]
        try await expectFault(script, .timeout(.total), .body) {
            $0.probe.timeouts = Timeouts(idle: .seconds(5), total: .milliseconds(800))
            $0.ends(after: .milliseconds(800))
        }
        try await expectFault(script, .timeout(.deadline), .body) {
            $0.probe.deadline = .milliseconds(800)
            $0.ends(after: .milliseconds(800))
        }
    }

    @Test("R66: the time in the queue counts for the deadline only")
    func deadlineInQueue() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .keepOpen])
        var configuration = NetworkConfiguration()
        configuration.limits.maxConcurrentTransfers = 1
        let agent = NetworkAgent(configuration: configuration)
        let held = Outcome<Response>()
        let task = agent.start(Get(server.baseURL + "/hold"), completion: held.take)
        try await server.waitForRequests(1)
        var waiting = HTTPRequest.probe(server.baseURL + "/x?" + Canary.query)
        waiting.deadline = .milliseconds(200)
        let error = try #require(await fault { () throws(RequestError) in try await agent.send(waiting) })
        check(
            error, ExpectedFault(code: .timeout(.queue), phases: [.queued], processed: false, attempts: 0, received: 0),
            url: server.baseURL + "/x?token=***")
        task.cancel()
        #expect(await held.code == .cancelled)
        #expect(server.requestCount == 1)
        await agent.shutdown()
    }

    /// How long the failing runs took, by the clock of their loop.
    private final class Times: RequestObserver {
        private let seen = Mutex<[Duration]>([])
        var ofFaults: [Duration] { seen.withLock { $0 } }

        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
            if run.url.contains("/fault") { seen.withLock { $0.append(metrics.total) } }
        }
    }

    @Test("R67: a body below the requested rate is an error, at its time and not before")
    func lowSpeed() async throws {
        let times = Times()
        try await expectFault(
            [
                .expectHead, .send(head("200 OK", "Content-Length: 1000\r\n")),
                .drip(String(repeating: "x", count: 1000), interval: .milliseconds(50)),
            ], .timeout(.lowSpeed), .body
        ) {
            $0.probe.timeouts = Timeouts(lowSpeed: .init(bytesPerSecond: 100, time: .seconds(1)))
            $0.bound = .seconds(5)
            $0.configuration.observers = [times]
        }
        let taken = times.ofFaults
        // The loop counts in whole milliseconds.
        #expect(taken.count == FaultSetup().plays.count && taken.allSatisfy { $0 > .milliseconds(990) }, "\(taken)")
        // One check of the rate is enough; the time of a single run may depend on the machine.
        #expect(taken.sorted()[taken.count / 2] < .milliseconds(1700), "\(taken)")
    }

    @Test("R67: without a rate a slow body succeeds; so does one above the rate")
    func slowButAlive() async throws {
        // The rate is checked at least twice while the body arrives; a machine that stands still for a second leaves
        // more bytes than required.
        for lowSpeed in [nil, Timeouts.LowSpeed(bytesPerSecond: 2, time: .milliseconds(600))] {
            let count = lowSpeed == nil ? 8 : 34
            try await expectAnswer(
                [
                    .expectHead, .send(head("200 OK", "Content-Length: \(count)\r\n")),
                    .drip(String(repeating: "x", count: count), interval: .milliseconds(40)), .serve,
                ],
                setUp: { $0.probe.timeouts = Timeouts(idle: .seconds(10), lowSpeed: lowSpeed) }
            ) { response, _ in
                #expect(response.bodyLength == count)
            }
        }
    }

    @Test("R70: a server that stops reading is a timeout of the sending")
    func stalledUpload() async throws {
        try await expectFault([.expectHead, .stopReading], .timeout(.write), .send, received: 0) {
            $0.probe.method = .put
            $0.probe.body = .bytes([UInt8](repeating: 0x61, count: 50_000_000))
            $0.probe.timeouts = Timeouts(idle: .milliseconds(300))
            $0.seesClose = false
            $0.bound = .seconds(5)
        }
    }

    @Test("R70: a server that reads slowly is not")
    func slowUpload() async throws {
        try await expectAnswer(
            [
                .expectHead, .expectBytes(3_000_000), .pause(.milliseconds(150)), .expectBytes(3_000_000),
                .pause(.milliseconds(150)), .expectBytes(14_000_000), .send(answer("taken")), .close,
            ],
            setUp: {
                $0.probe.method = .put
                $0.probe.body = .bytes([UInt8](repeating: 0x61, count: 20_000_000))
                $0.probe.timeouts = Timeouts(idle: .seconds(10))
            }
        ) { response, server in
            #expect(response.text == "taken")
            #expect(server.requests[0].bodyLength == 20_000_000)
        }
    }
}

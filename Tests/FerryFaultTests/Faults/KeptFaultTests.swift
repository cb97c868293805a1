import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// What a cache stores of responses that fail (row R98, and the cache's part of others). Each fault is compared with
/// the same response without it, which is stored: so only the fault can be the reason.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct KeptFaultTests {
    private static let size = 100_000
    private static let sized = head("200 OK", "Content-Length: \(size)\r\n")
    private static let chunked = head("200 OK", "Transfer-Encoding: chunked\r\n")

    /// A response that is stored. It may be played to its end, unlike others.
    private func expectKept(
        _ script: LoopbackScript = [], sourceLocation: SourceLocation = #_sourceLocation,
        setUp: (inout FaultSetup) -> Void = { _ in }
    ) async throws {
        try await expectAnswer(
            script, sourceLocation: sourceLocation,
            setUp: {
                setUp(&$0)
                $0.keeps = true
            }
        ) { answer, _ in
            #expect(answer.status == 200 && answer.bodyLength > 0, sourceLocation: sourceLocation)
        }
    }

    @Test("R98: a whole body is stored, by the same check")
    func whole() async throws {
        try await expectKept([.expectHead, .send(Self.sized), .pattern(bytes: Self.size), .serve])
        try await expectKept([.expectHead, .send(Self.sized), .pattern(bytes: Self.size), .close])
        try await expectKept([.expectHead, .send(Self.chunked + "5\r\nhello\r\n0\r\n\r\n"), .serve])
        try await expectKept { $0.path = "/gzip/\(Self.size)" }
    }

    @Test("R98, R01, R02: nothing of a truncated body is stored")
    func cutShort() async throws {
        try await expectFault(
            [.expectHead, .send(Self.sized), .pattern(bytes: Self.size - 1), .close],
            .incompleteBody(expected: Int64(Self.size), got: Int64(Self.size - 1)), .body)
        try await expectFault(
            [.expectHead, .send(Self.chunked + "5\r\nhello\r\n"), .close], .incompleteBody(expected: nil, got: 5), .body
        )
    }

    @Test("R98, R18: nothing of a body is stored whose connection is reset")
    func reset() async throws {
        try await expectFault(
            [.expectHead, .send(Self.sized), .pattern(bytes: 10), .reset], .connectionReset, .body, .waitingHead)
    }

    @Test("R98, R30: nothing of a truncated compressed body is stored, even if its length agrees")
    func compressedCutShort() async throws {
        try await expectFault([], .contentDecoding(.truncated), .body) {
            $0.path = "/gzip/\(Self.size)"
            $0.query = "cut=1"
        }
    }

    @Test("R98, R31: nothing of a damaged compressed body is stored")
    func compressedAndDamaged() async throws {
        try await expectFault([], .contentDecoding(.corrupt), .body) {
            $0.path = "/gzip/\(Self.size)"
            $0.query = "corrupt=1"
        }
    }

    @Test("R98: nothing of a body above the limit is stored; one that reaches it is")
    func beyondTheBound() async throws {
        for path in ["/bytes/8192", "/chunked/8192", "/gzip/8192"] {
            try await expectKept {
                $0.path = path
                $0.probe.maxBodyBytes = 8192
            }
            try await expectFault([], .responseTooLarge, .body, .head) {
                $0.path = path
                $0.probe.maxBodyBytes = 8191
            }
        }
    }

    @Test("R98, R66: nothing of a body that stops until its timeout is stored")
    func stalled() async throws {
        let script: LoopbackScript = [.expectHead, .send(Self.sized), .pattern(bytes: Self.size - 1), .keepOpen]
        try await expectFault(script, .timeout(.read), .body) {
            $0.probe.timeouts = Timeouts(idle: .milliseconds(500))
            $0.ends(after: .milliseconds(500))
        }
        try await expectFault(script, .timeout(.deadline), .body) {
            $0.probe.deadline = .milliseconds(800)
            $0.ends(after: .milliseconds(800))
        }
    }

    @Test("R98, R71: nothing of a body is stored that is cancelled midway")
    func cancelled() async throws {
        var setup = FaultSetup()
        setup.ends(within: .milliseconds(50))
        let script: LoopbackScript = [
            .expectHead, .send(Self.sized), .pattern(bytes: Self.size - 1), .mark("begun"), .keepOpen,
        ]
        let expected = ExpectedFault(
            code: .cancelled, phases: [.waitingHead, .head, .body], processed: true, attempts: 1)
        try await forEachPlay(script, setup, #_sourceLocation) { run, stage, _ in
            try await stage.server.waitForMark("begun")
            run.callback.begin()
            run.cancel()
        } check: { _, outcome, stage in
            check(try #require(outcome.error), expected, url: stage.shownURL)
            return expected.summary
        }
    }

    @Test("R98: a rejected response is not stored; without validation it is")
    func refusal() async throws {
        let script: LoopbackScript = [
            .expectHead, .send(head("404 Not Found", "Content-Length: 4\r\n") + "none"), .serve,
        ]
        try await expectFault(script, .invalidStatusCode(404), .processing)
        try await expectAnswer(
            script,
            setUp: {
                $0.probe.statusValidation = .any
                $0.keeps = true
            }
        ) { answer, _ in
            #expect(answer.status == 404)
        }
    }
}

import FerrySynchronization
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RetryMachineTests {
    private static let now = HTTPDate(secondsSince1970: 1_795_000_000)

    static func fault(
        _ code: RequestError.Code, processed: Bool = true, method: HTTPMethod = .get, isIdempotent: Bool = true,
        headers: Headers = Headers()
    ) -> FailedAttempt {
        var facts = RequestError.Facts(code: code, phase: .waitingHead)
        facts.mayHaveBeenProcessed = processed
        return FailedAttempt(
            .fault(RequestError(facts)), attempt: 1, method: method, url: "http://h/a?token=canary",
            isIdempotent: isIdempotent, headers: headers)
    }

    static func answer(_ status: Int, _ headers: Headers = Headers(), isIdempotent: Bool = true) -> FailedAttempt {
        FailedAttempt(
            .response(status: status, headers: headers), attempt: 1, method: isIdempotent ? .get : .post,
            url: "http://h/a", isIdempotent: isIdempotent, headers: Headers())
    }

    private func decide(
        _ attempt: FailedAttempt, by policy: RetryPolicy = .exponential(jitter: .none), remaining: Duration? = nil,
        isBodyReplayable: Bool = true, random: Double = 0.5, budget: Bool = true
    ) -> RetryMachine.Action {
        var machine = RetryMachine(policy)
        return machine.failed(
            attempt, .init(remaining: remaining, isBodyReplayable: isBodyReplayable, now: Self.now),
            random: { random }, withdraw: { budget })
    }

    @Test func nothingIsRetriedByDefault() {
        #expect(RetryMachine(.none).isOff)
        #expect(decide(Self.fault(.connect), by: .none) == .deliver(.noAttemptsLeft))
        #expect(decide(Self.answer(503), by: .none) == .deliver(.noAttemptsLeft))
        #expect(!RetryMachine(.exponential()).isOff)
    }

    @Test(arguments: [408, 429, 502, 503, 504])
    func someAnswersAreRetried(_ status: Int) {
        #expect(decide(Self.answer(status)) == .retry(after: .milliseconds(200)))
    }

    @Test(arguments: [200, 304, 400, 403, 404, 409, 425, 500, 501, 505])
    func othersAreNot(_ status: Int) {
        #expect(decide(Self.answer(status)) == .deliver(.notRetried))
    }

    @Test(arguments: [401, 407])
    func missingCredentialsAreNeverRetried(_ status: Int) {
        var policy = RetryPolicy.exponential()
        policy.statuses = [status]
        policy.decide = { _ in .retry }
        #expect(decide(Self.answer(status), by: policy) == .deliver(.notRetried))
    }

    @Test func statusesAreThePolicysToSay() {
        var policy = RetryPolicy.exponential(jitter: .none)
        policy.statuses = [500]
        #expect(decide(Self.answer(500), by: policy) == .retry(after: .milliseconds(200)))
        #expect(decide(Self.answer(503), by: policy) == .deliver(.notRetried))
    }

    @Test(arguments: [
        RequestError.Code.connect(.refused), .connect(.unreachable), .connect, .dns(.temporary), .timeout(.dns),
        .timeout(.connect), .timeout(.tls), .connectionReset, .connectionClosed,
        .incompleteBody(expected: 100, got: 3), .http2Stream,
    ])
    func passingFaultsAreRetried(_ code: RequestError.Code) {
        #expect(decide(Self.fault(code)) == .retry(after: .milliseconds(200)))
    }

    @Test(arguments: [
        RequestError.Code.dns(.notFound), .dns(.failed), .timeout(.responseHead), .timeout(.read), .timeout(.total),
        .timeout(.write), .timeout(.lowSpeed), .tls(.handshake), .proxy, .malformedResponse(.chunk),
        .headersTooLarge(.bytes), .responseTooLarge, .contentDecoding(.corrupt), .invalidJSON, .decoding,
    ])
    func lastingFaultsAreNotUnlessNamed(_ code: RequestError.Code) {
        #expect(decide(Self.fault(code)) == .deliver(.notRetried))
        var policy = RetryPolicy.exponential(jitter: .none)
        policy.retryableErrors = [code]
        #expect(decide(Self.fault(code), by: policy) == .retry(after: .milliseconds(200)))
    }

    @Test(arguments: [
        RequestError.Code.cancelled, .shutdown, .queueFull, .invalidURL, .unsupportedScheme, .invalidRequest,
        .invalidRequest(.headerValue), .addressForbidden, .tls(.expired), .tls(.hostname), .tls(.untrusted),
        .tls(.pinMismatch), .tls(.configuration), .timeout(.deadline), .timeout(.queue), .tooManyRedirects,
        .redirectForbidden(.downgrade), .bodyNotReplayable, .uploadSource, .fileIO, .applicationError,
    ])
    func someFaultsAreNeverRetried(_ code: RequestError.Code) {
        var policy = RetryPolicy.exponential()
        policy.retryableErrors = [code]
        policy.decide = { _ in .retry }
        #expect(decide(Self.fault(code, processed: false), by: policy) == .deliver(.notRetried))
    }

    @Test func whatMayHaveBeenProcessedIsNotSentTwice() {
        let post = Self.fault(.connectionClosed, method: .post, isIdempotent: false)
        #expect(decide(post) == .deliver(.mayHaveBeenProcessed))
        #expect(decide(Self.answer(503, isIdempotent: false)) == .deliver(.mayHaveBeenProcessed))
    }

    @Test func postThatWasCertainlyNotProcessedIsRetried() {
        let post = Self.fault(.connect(.refused), processed: false, method: .post, isIdempotent: false)
        #expect(decide(post) == .retry(after: .milliseconds(200)))
    }

    @Test func postIsRetriedWhereThePolicySaysSo() {
        var policy = RetryPolicy.exponential(jitter: .none)
        policy.retriesNonIdempotent = true
        let post = Self.fault(.connectionClosed, method: .post, isIdempotent: false)
        #expect(decide(post, by: policy) == .retry(after: .milliseconds(200)))
    }

    @Test func idempotencyKeyMakesAPostIdempotent() {
        let post = Self.fault(
            .connectionClosed, method: .post, isIdempotent: false, headers: ["idempotency-key": "7f3a"])
        #expect(post.isIdempotent)
        #expect(decide(post) == .retry(after: .milliseconds(200)))
    }

    @Test func bodyThatIsGoneIsNotSentAgain() {
        #expect(decide(Self.answer(503), isBodyReplayable: false) == .deliver(.bodyNotReplayable))
    }

    @Test func waitsGrowUpToTheCap() {
        var machine = RetryMachine(
            .exponential(maxAttempts: 6, baseDelay: .seconds(1), factor: 3, maxDelay: .seconds(20), jitter: .none))
        var waits: [RetryMachine.Action] = []
        for _ in 0..<6 {
            waits.append(
                machine.failed(Self.answer(503), .init(now: Self.now), random: { 0.5 }, withdraw: { true }))
        }
        #expect(
            waits == [
                .retry(after: .seconds(1)), .retry(after: .seconds(3)), .retry(after: .seconds(9)),
                .retry(after: .seconds(20)), .retry(after: .seconds(20)), .deliver(.noAttemptsLeft),
            ])
        #expect(machine.retries == 5)
    }

    @Test(arguments: [
        (RetryPolicy.Jitter.none, 0.25, 1000), (.full, 0.25, 250), (.full, 0, 0), (.full, 1, 1000),
        (.equal, 0.25, 625), (.equal, 0, 500), (.equal, 1, 1000),
    ])
    func waitsAreDrawnAtRandom(_ jitter: RetryPolicy.Jitter, _ random: Double, _ milliseconds: Int) {
        let policy = RetryPolicy.exponential(baseDelay: .seconds(1), jitter: jitter)
        #expect(decide(Self.answer(503), by: policy, random: random) == .retry(after: .milliseconds(milliseconds)))
    }

    @Test(arguments: [0, 0.5, -1, Double.nan, Double.infinity, 1e300])
    func oddFactorsMakeNoOddWaits(_ factor: Double) throws {
        let policy = RetryPolicy.exponential(
            maxAttempts: 2000, baseDelay: .milliseconds(1), factor: factor, maxDelay: .seconds(2), jitter: .none)
        var machine = RetryMachine(policy)
        for _ in 0..<1999 {
            let action = machine.failed(Self.answer(503), .init(now: Self.now), random: { 1 }, withdraw: { true })
            guard case .retry(let wait) = action, wait >= .milliseconds(1), wait <= .seconds(2) else {
                Issue.record("\(action)")
                return
            }
        }
    }

    struct After: Sendable, CustomTestStringConvertible {
        let value: String
        let action: RetryMachine.Action
        var testDescription: String { value }
        init(_ value: String, _ action: RetryMachine.Action) { (self.value, self.action) = (value, action) }
    }

    @Test(arguments: [
        After("1", .retry(after: .seconds(1))),
        After("0", .retry(after: .zero)),
        After("60", .retry(after: .seconds(60))),
        After("61", .deliver(.waitTooLong)),
        After("1000000000", .deliver(.waitTooLong)),
        After("9223372036854775807", .deliver(.waitTooLong)),
        After("\(HTTPDate(secondsSince1970: 1_795_000_005))", .retry(after: .seconds(5))),
        After("\(HTTPDate(secondsSince1970: 1_794_999_000))", .retry(after: .zero)),
        After("\(HTTPDate(secondsSince1970: 1_895_000_000))", .deliver(.waitTooLong)),
        // Invalid values are ignored: the wait is the policy's own.
        After("-5", .retry(after: .milliseconds(200))),
        After("abc", .retry(after: .milliseconds(200))),
        After("1e9", .retry(after: .milliseconds(200))),
        After("1.5", .retry(after: .milliseconds(200))),
        After("+1", .retry(after: .milliseconds(200))),
        After("", .retry(after: .milliseconds(200))),
        After("99999999999999999999", .retry(after: .milliseconds(200))),
        After("٣", .retry(after: .milliseconds(200))),
    ])
    func retryAfterIsHonouredUpToItsCap(_ row: After) {
        #expect(decide(Self.answer(503, ["Retry-After": row.value])) == row.action)
    }

    @Test func retryAfterIsSpreadByTheJitter() {
        let policy = RetryPolicy.exponential(baseDelay: .seconds(2), jitter: .full)
        let attempt = Self.answer(429, ["Retry-After": "10"])
        #expect(decide(attempt, by: policy, random: 0) == .retry(after: .seconds(10)))
        #expect(decide(attempt, by: policy, random: 0.5) == .retry(after: .seconds(11)))
        #expect(decide(attempt, by: policy, random: 1) == .retry(after: .seconds(12)))
    }

    @Test func longestOfSeveralRetryAfterCounts() {
        let attempt = Self.answer(503, ["Retry-After": "3", "retry-after": "junk", "Retry-After": "7"])
        #expect(decide(attempt) == .retry(after: .seconds(7)))
    }

    @Test func deadlineThatWouldPassMeansNoRetry() {
        #expect(decide(Self.answer(503), remaining: .milliseconds(200)) == .deliver(.deadline))
        #expect(decide(Self.answer(503), remaining: .milliseconds(201)) == .retry(after: .milliseconds(200)))
        #expect(decide(Self.answer(503, ["Retry-After": "5"]), remaining: .seconds(5)) == .deliver(.deadline))
        #expect(decide(Self.answer(503), remaining: .seconds(-1)) == .deliver(.deadline))
    }

    @Test func emptyBudgetMeansNoRetry() {
        #expect(decide(Self.answer(503), budget: false) == .deliver(.noBudget))
    }

    @Test func budgetIsChargedForRetriesOnly() {
        var charged = 0
        var machine = RetryMachine(.exponential(maxAttempts: 2, jitter: .none))
        let surroundings = RetryMachine.Surroundings(remaining: .seconds(1), now: Self.now)
        for attempt in [
            Self.answer(200), Self.answer(503, ["Retry-After": "7"]), Self.fault(.cancelled), Self.answer(503),
            Self.answer(503),
        ] {
            _ = machine.failed(
                attempt, surroundings, random: { 0 },
                withdraw: {
                    charged += 1; return true
                })
        }
        #expect(charged == 1)
    }

    @Test func ruleMayVetoOrAllow() {
        var policy = RetryPolicy.exponential(jitter: .none)
        policy.decide = { attempt in
            switch attempt.status {
            case 503: .giveUp
            case 500: .retry
            default: .byPolicy
            }
        }
        #expect(decide(Self.answer(503), by: policy) == .deliver(.vetoed))
        #expect(decide(Self.answer(500), by: policy) == .retry(after: .milliseconds(200)))
        #expect(decide(Self.answer(500, isIdempotent: false), by: policy) == .retry(after: .milliseconds(200)))
        #expect(decide(Self.answer(502), by: policy) == .retry(after: .milliseconds(200)))
        #expect(decide(Self.answer(404), by: policy) == .deliver(.notRetried))
        #expect(decide(Self.answer(500), by: policy, isBodyReplayable: false) == .deliver(.bodyNotReplayable))
        #expect(decide(Self.answer(500), by: policy, budget: false) == .deliver(.noBudget))
    }

    @Test func ruleSeesTheFailureWithoutSecrets() throws {
        let seen = Seen()
        var policy = RetryPolicy.exponential()
        policy.decide = { attempt in
            seen.attempts.withLock { $0.append(attempt) }
            return .byPolicy
        }
        _ = decide(Self.fault(.timeout(.connect), processed: false, method: .put), by: policy)
        _ = decide(Self.answer(503, ["X-Reason": "tired"]), by: policy)
        let fault = try #require(seen.attempts.withLock { $0.first })
        #expect(fault.code == .timeout(.connect))
        #expect(fault.status == nil)
        #expect(!fault.mayHaveBeenProcessed)
        #expect(fault.method == .put)
        #expect(fault.url == "http://h/a?token=***")
        let answer = try #require(seen.attempts.withLock { $0.last })
        #expect(answer.status == 503)
        #expect(answer.code == nil)
        #expect(answer.mayHaveBeenProcessed)
        guard case .response(_, let headers) = answer.outcome else { return }
        #expect(headers["X-Reason"] == "tired")
    }
}

private final class Seen: Sendable {
    let attempts = Mutex<[FailedAttempt]>([])
}

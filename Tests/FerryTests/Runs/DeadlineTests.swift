import Dispatch
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The deadline counts from the start of a run, whatever it waits for.
@Suite(.timeLimit(.minutes(2))) struct DeadlineTests {
    /// A run with a closure whose processing is held up until its deadline has passed.
    private func heldUp(
        _ stub: StubTransport, _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) async -> Result<Reply<Response>, RequestError> {
        var configuration = NetworkConfiguration.test
        configuration.deadline = .milliseconds(300)
        configuration.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .zero)
        change(&configuration)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        agent.core.processingQueue.suspend()
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        // The queue does nothing meanwhile, so nothing else tells that the deadline has passed.
        await elapse(.milliseconds(305))
        agent.core.processingQueue.resume()
        let result = await outcome.result
        // A run that was never sent has no metrics.
        if result.error?.attempts != 0 { #expect(task.metrics.total >= .milliseconds(300)) }
        await agent.shutdown()
        return result
    }

    @Test func timeInTheProcessingQueueCountsBeforeARetry() async {
        let stub = StubTransport(responses: [.response(status: 503), .response()])
        let error = await heldUp(stub).error
        #expect(error?.code == .invalidStatusCode(503) && error?.attempts == 1)
        #expect(stub.requests.count == 1)
    }

    @Test func timeBeforeTheTaskOfARunLooksAtItsResponseCounts() async {
        var configuration = NetworkConfiguration.test
        configuration.deadline = .milliseconds(300)
        configuration.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .zero)
        let stub = StubTransport(responses: [.response(status: 503), .response()])
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let run = AwaitedRun.start(Get(), by: agent.core)
        let first = await run.answer(by: agent.core)
        // The run does nothing meanwhile, so nothing else tells that the deadline has passed.
        await elapse(.milliseconds(305))
        let last = await run.goOn(Get(), after: first, by: agent.core)
        #expect(RequestMetrics(last, ProcessingTimes(isMeasured: false)).total >= .milliseconds(300))
        #expect(stub.requests.count == 1)
        await agent.shutdown()
    }

    @Test func andBeforeWhatFollowsARedirect() async {
        let stub = StubTransport(responses: [.redirect(to: "/y"), .response()])
        let error = await heldUp(stub).error
        #expect(error?.code == .timeout(.deadline) && error?.attempts == 1)
        #expect(stub.requests.count == 1)
    }

    @Test func andBeforeARunThatBeginsThere() async {
        let stub = StubTransport(always: .response())
        let error = await heldUp(stub) { $0.interceptors = [Intercept { _, _ in nil }] }.error
        #expect(error?.code == .timeout(.deadline) && error?.attempts == 0)
        #expect(stub.requests.isEmpty)
    }
}
